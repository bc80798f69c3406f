#include "model/tokenizer/normal_form.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

struct KeptRange {
  char32_t first, last;
};

/// Marks and compositions that came after Unicode 9 (and U+1715, whose class changed). Tokenizers in the field were
/// trained with Hugging Face's normalizer, which has the tables of Unicode 9: there these are characters that neither
/// move nor compose. Ids follow it. And U+11A7, the place before the first final consonant, which utf8proc 2.8 loses
/// after a syllable.
constexpr auto kept_apart = std::to_array<KeptRange>(
    {{0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x11A7, 0x11A7},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
     {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
     {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
     {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E},
     {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99},
     {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1},
     {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}});

/// Characters with a compatibility decomposition that came after Unicode 9.
constexpr auto kept_whole = std::to_array<KeptRange>({{0x32FF, 0x32FF},
                                                      {0xA7F2, 0xA7F4},
                                                      {0xAB69, 0xAB69},
                                                      {0x10781, 0x107BA},
                                                      {0x1E030, 0x1E06D},
                                                      {0x1F16C, 0x1F16C},
                                                      {0x1FBF0, 0x1FBF9}});

bool is_in_range(std::span<const KeptRange> ranges, char32_t c) {
  const auto range = std::partition_point(ranges.begin(), ranges.end(), [&](const KeptRange& r) { return r.last < c; });
  return range != ranges.end() && range->first <= c;
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void append_decomposed(char32_t c, bool compatibility, std::vector<utf8proc_int32_t>& characters) {
  std::array<utf8proc_int32_t, 32> parts;  // the longest decomposition has 18
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  constexpr auto room = static_cast<utf8proc_ssize_t>(parts.size());
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), room, options, nullptr);
  CERMET_ASSERT(count >= 0 && count <= room);
  characters.insert(characters.end(), parts.begin(), parts.begin() + count);
}

/// Orders decomposed characters, composes them where wanted, appends them to `out` and clears them.
/// utf8proc orders marks by exchanging neighbours, which takes quadratic time on a hostile run of them: hence the
/// sorting here.
void append_ordered(std::vector<utf8proc_int32_t>& characters, bool composed, std::string& out) {
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if_not(begin, characters.end(), is_starter);
    const auto end = std::find_if(begin, characters.end(), is_starter);
    std::stable_sort(begin, end,
                     [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
  auto size = std::ssize(characters);
  if (composed) {
    constexpr auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    size = utf8proc_normalize_utf32(characters.data(), size, options);
    CERMET_ASSERT(size >= 0);
  }
  for (std::ptrdiff_t i = 0; i < size; ++i)
    append_utf8(out, static_cast<char32_t>(characters[static_cast<std::size_t>(i)]));
  characters.clear();
}

/// Below the first combining mark no character composes with its neighbour, and none of them changes in form C; below
/// U+0080 none in any form.
bool is_plain(std::string_view text, bool compatibility, bool composed) {
  const unsigned char first = !compatibility && composed ? 0xCC : 0x80;  // 0xCC: lead bytes of U+0300 and on
  return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) < first; });
}

}  // namespace

void normalize(std::string& text, NormalForm form) {
  const bool compatibility = form == NormalForm::kc || form == NormalForm::kd,
             composed = form == NormalForm::c || form == NormalForm::kc;
  if (is_plain(text, compatibility, composed)) return;
  std::string out;
  std::vector<utf8proc_int32_t> characters;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Unit unit = first_utf8_unit(std::string_view(text).substr(i));
    CERMET_ASSERT(unit.valid);
    if (is_in_range(kept_apart, unit.code_point)) {
      append_ordered(characters, composed, out);
      append_utf8(out, unit.code_point);
    } else {
      append_decomposed(unit.code_point, compatibility && !is_in_range(kept_whole, unit.code_point), characters);
    }
    i += unit.size;
  }
  append_ordered(characters, composed, out);
  text = std::move(out);
}

}  // namespace cermet
