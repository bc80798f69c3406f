// What the tokenizer asks about characters, answered by utf8proc.
#pragma once

#include <string>
#include <string_view>

namespace cermet {

/// Unicode White_Space.
bool is_space(char32_t c);
/// A character of a word, as regular expressions see it (Unicode technical standard 18): letters, marks, decimal digits, connectors, joiners.
bool is_word(char32_t c);

/// The last character of a valid UTF-8 text that is not empty, and its size.
struct LastCharacter {
  char32_t code_point;
  std::size_t size;
};
LastCharacter last_character(std::string_view text);

/// Normalization form C (Unicode 9) of a valid UTF-8 text, in time linear in its length but for runs of combining marks, which are sorted.
/// Returns `text` itself where nothing can change, else a view of `buffer`.
std::string_view to_nfc(std::string_view text, std::string& buffer);

}  // namespace cermet
