// What a user may have meant by a mistyped name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cermet {

/// Damerau-Levenshtein distance without repeated edits of one place ("optimal string alignment"), case aside.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known name with the fewest changed, missing, added or swapped letters, case aside; empty where none is close:
/// one change in up to five letters, two in up to eight, three beyond.
std::string_view closest_name(std::string_view word, std::span<const std::string_view> known);

}  // namespace cermet
