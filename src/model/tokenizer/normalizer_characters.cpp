// Steps of normalizers that look at one character after the other.
#include "base/text.hpp"
#include "model/tokenizer/byte_map.hpp"
#include "model/tokenizer/normalizer_step.hpp"
#include "model/tokenizer/unicode.hpp"

namespace cermet {

void keep_characters(NormalizedText& text, FunctionRef<bool(char32_t)> keep) {
  std::string kept;
  kept.reserve(text.text.size());
  for (std::size_t at = 0; at < text.text.size();) {
    const Utf8Unit unit = first_utf8_unit(std::string_view(text.text).substr(at));
    if (keep(unit.code_point)) kept.append(text.text, at, unit.size);
    else if (at == 0) text.keeps_start = false;
    at += unit.size;
  }
  text.text = std::move(kept);
}

void map_characters(NormalizedText& text, FunctionRef<void(std::string& out, char32_t c)> append) {
  std::string mapped;
  mapped.reserve(text.text.size());
  for (std::size_t at = 0; at < text.text.size();) {
    const Utf8Unit unit = first_utf8_unit(std::string_view(text.text).substr(at));
    append(mapped, unit.code_point);
    at += unit.size;
  }
  text.text = std::move(mapped);
}

NormalizerStep lowercase_step() {
  return [](NormalizedText& text, RegexMemory&) {
    map_characters(text, [](std::string& out, char32_t c) { append_lowercase(out, c); });
  };
}

NormalizerStep strip_accents_step() {
  return [](NormalizedText& text, RegexMemory&) {
    keep_characters(text, [](char32_t c) { return !is_combining_mark(c); });
  };
}

NormalizerStep byte_level_step() {
  return [](NormalizedText& text, RegexMemory&) { text.text = name_of_bytes(text.text); };
}

NormalizerStep nmt_step() {
  const auto is_dropped = [](char32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  };
  const auto is_blank = [](char32_t c) {
    return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
           c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  };
  return [=](NormalizedText& text, RegexMemory&) {
    keep_characters(text, [&](char32_t c) { return !is_dropped(c); });
    map_characters(text, [&](std::string& out, char32_t c) { append_utf8(out, is_blank(c) ? U' ' : c); });
  };
}

}  // namespace cermet
