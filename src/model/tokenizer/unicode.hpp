// What the tokenizer asks about characters, answered by utf8proc.
#pragma once

#include <string>
#include <string_view>

namespace cermet {

/// Unicode White_Space.
bool is_space(char32_t c);
/// A character of a word, as regular expressions see it (Unicode technical standard 18): letters, marks, decimal
/// digits, connectors, joiners. This and the classes below are those of the tokenizers library, whose tables are of
/// several versions of Unicode.
bool is_word(char32_t c);

/// The last character of a valid UTF-8 text that is not empty, and its size.
struct LastCharacter {
  char32_t code_point;
  std::size_t size;
};
LastCharacter last_character(std::string_view text);

bool is_numeric(char32_t c);
bool is_punctuation(char32_t c);
bool is_combining_mark(char32_t c);
bool is_nonspacing_mark(char32_t c);
bool is_control(char32_t c);  ///< not tab, line feed and carriage return, which count as white space

/// Appends the lower case of a character.
void append_lowercase(std::string& out, char32_t c);

}  // namespace cermet
