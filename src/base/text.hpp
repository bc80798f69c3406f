// Text of unknown origin: walking UTF-8 that may be broken, and quoting it in a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cermet {

/// What a byte string starts with: a character, or invalid bytes.
struct Utf8Unit {
  std::size_t size;     ///< bytes, at least 1; of broken input the longest start of a character ("maximal subpart",
                        ///< Unicode 3.9), or one byte
  bool valid;           ///< a whole character
  bool incomplete;      ///< not valid only because the text ends: more bytes could make it a character
  char32_t code_point;  ///< of a valid unit; 0 otherwise
};

/// The first unit of a text that is not empty. Overlong forms, surrogates and code points above U+10FFFF are broken.
Utf8Unit first_utf8_unit(std::string_view text);

/// Appends a code point in UTF-8.
void append_utf8(std::string& out, char32_t code_point);

/// Text in double quotes for a message: one line of valid UTF-8, control and broken bytes escaped, cut after `longest`
/// bytes.
std::string quote(std::string_view text, std::size_t longest = 80);

/// Text in double quotes with the escapes \" \\ \n \t \r and \xHH (other control bytes): nothing is lost, and it stays
/// on one line.
std::string escape(std::string_view text);
/// The text that escape() put at the start of `quoted`, and in `size` how many bytes of it that took; nothing when it
/// is not one.
std::optional<std::string> unescape(std::string_view quoted, std::size_t& size);

}  // namespace cermet
