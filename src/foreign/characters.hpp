// Characters of names in manifests.
#pragma once

#include <algorithm>
#include <string_view>

namespace cermet::foreign {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// A letter or underscore, then letters, digits and underscores; at most 256 of them.
constexpr bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= 256 && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}
/// The same in small letters, as fields of configurations are written.
constexpr bool is_field_name(std::string_view text) {
  return is_identifier(text) && std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace cermet::foreign
