#include "model/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/text.hpp"

namespace cermet {
namespace {

struct CharacterRange {
  char32_t first, last;
};

struct LowercaseRow {
  char32_t first, last, lower;  ///< of the first; those of the others are as far away
};

#include "model/tokenizer/unicode_classes.inc"

bool is_in(std::span<const CharacterRange> ranges, char32_t c) {
  const auto range =
      std::partition_point(ranges.begin(), ranges.end(), [&](const CharacterRange& r) { return r.last < c; });
  return range != ranges.end() && range->first <= c;
}

/// Where utf8proc's class differs from the library's.
bool corrected(bool ours, std::span<const CharacterRange> in, std::span<const CharacterRange> out, char32_t c) {
  if (c < 0x80) return ours;
  return ours ? !is_in(out, c) : is_in(in, c);
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool is_mark(utf8proc_category_t c) {
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}
bool is_letter(utf8proc_category_t c) { return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO; }

/// Joiners, and the letters in circles and squares, which are alphabetic symbols.
bool joins_words(char32_t c) {
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  const utf8proc_category_t k = category(c);
  const bool ours = is_letter(k) || is_mark(k) || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_ND ||
                    k == UTF8PROC_CATEGORY_PC || joins_words(c);
  return corrected(ours, word_in, word_out, c);
}

bool is_numeric(char32_t c) {
  const utf8proc_category_t k = category(c);
  return corrected(k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO, numeric_in, numeric_out, c);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
  const utf8proc_category_t k = category(c);
  return corrected(k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO, punctuation_in, punctuation_out, c);
}

bool is_combining_mark(char32_t c) { return corrected(is_mark(category(c)), combining_mark_in, combining_mark_out, c); }
bool is_nonspacing_mark(char32_t c) {
  return corrected(category(c) == UTF8PROC_CATEGORY_MN, nonspacing_mark_in, nonspacing_mark_out, c);
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t k = category(c);
  return corrected(k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO, control_in,
                   control_out, c);
}

void append_lowercase(std::string& out, char32_t c) {
  if (c == 0x130) {  // the only one whose lower case is two characters
    out += "i\u0307";
    return;
  }
  const auto row =
      std::ranges::find_if(lowercase_rows, [&](const LowercaseRow& r) { return r.first <= c && c <= r.last; });
  if (row != lowercase_rows.end()) return append_utf8(out, row->lower + (c - row->first));
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

LastCharacter last_character(std::string_view text) {
  std::size_t size = 1;
  while ((static_cast<unsigned char>(text[text.size() - size]) & 0xC0u) == 0x80u) ++size;
  return {first_utf8_unit(text.substr(text.size() - size)).code_point, size};
}

}  // namespace cermet
