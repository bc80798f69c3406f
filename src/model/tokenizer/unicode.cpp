#include "model/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

struct Range {
  char32_t first, last;
};

/// Marks and compositions that came after Unicode 9 (and U+1715, whose class changed). Tokenizers in the field were trained with Hugging Face's normalizer,
/// which has the tables of Unicode 9: there these are characters that neither move nor compose. Ids follow it.
/// And U+11A7, the place before the first final consonant, which utf8proc 2.8 loses after a syllable.
constexpr std::array kept_apart = std::to_array<Range>(
    {{0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},
     {0x11A7, 0x11A7},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC},
     {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
     {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
     {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1},
     {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}});

bool is_kept_apart(char32_t c) {
  const auto range = std::partition_point(kept_apart.begin(), kept_apart.end(), [&](const Range& r) { return r.last < c; });
  return range != kept_apart.end() && range->first <= c;
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void append_decomposed(char32_t c, std::vector<utf8proc_int32_t>& characters) {
  std::array<utf8proc_int32_t, 32> parts;  // the longest canonical decomposition has 4
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  constexpr auto room = static_cast<utf8proc_ssize_t>(parts.size());
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), room, options, nullptr);
  CERMET_ASSERT(count >= 0 && count <= room);
  characters.insert(characters.end(), parts.begin(), parts.begin() + count);
}

/// Orders and composes decomposed characters, appends them to `out` and clears them.
/// utf8proc orders marks by exchanging neighbours, which takes quadratic time on a hostile run of them: hence the sorting here.
void append_composed(std::vector<utf8proc_int32_t>& characters, std::string& out) {
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if_not(begin, characters.end(), is_starter);
    const auto end = std::find_if(begin, characters.end(), is_starter);
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
  constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto size = utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()), options);
  CERMET_ASSERT(size >= 0);
  for (utf8proc_ssize_t i = 0; i < size; ++i) append_utf8(out, static_cast<char32_t>(characters[static_cast<std::size_t>(i)]));
  characters.clear();
}

/// Below the first combining mark no character composes with its neighbour, and none of them changes in form C.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0xCC; });  // lead bytes of U+0300 and on
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return true;
    default: break;
  }
  // Joiners, and the letters in circles and squares, which are alphabetic symbols.
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

LastCharacter last_character(std::string_view text) {
  std::size_t size = 1;
  while ((static_cast<unsigned char>(text[text.size() - size]) & 0xC0u) == 0x80u) ++size;
  return {first_utf8_unit(text.substr(text.size() - size)).code_point, size};
}

std::string_view to_nfc(std::string_view text, std::string& buffer) {
  if (is_plain(text)) return text;
  buffer.clear();
  std::vector<utf8proc_int32_t> characters;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(i));
    CERMET_ASSERT(unit.valid);
    if (is_kept_apart(unit.code_point)) {
      append_composed(characters, buffer);
      append_utf8(buffer, unit.code_point);
    } else {
      append_decomposed(unit.code_point, characters);
    }
    i += unit.size;
  }
  append_composed(characters, buffer);
  return buffer;
}

}  // namespace cermet
