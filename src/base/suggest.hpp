// What a user may have meant by a mistyped name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cermet {

/// The known name with the fewest changed, missing, added or swapped letters, case aside; empty where none is close: one change in up to five letters, two in
/// up to eight, three beyond.
std::string_view closest_name(std::string_view word, std::span<const std::string_view> known);

}  // namespace cermet
