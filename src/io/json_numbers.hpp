// NaN, Infinity and -Infinity, which JSON has not and Python writes: config.json of several tools has them in fields
// that nothing reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cermet {

/// The text with each such number as a string of the same length that no other text has, for a strict parser; nothing
/// where there are none.
std::optional<std::string> mark_python_numbers(std::string_view text);
/// The number that a string marks.
std::optional<double> marked_number(std::string_view string);
/// The inverse of mark_python_numbers(), for a text that was written from a marked one.
void unmark_python_numbers(std::string& text);
/// "NaN", "Infinity" or "-Infinity".
std::string_view python_name(double not_finite);

}  // namespace cermet
