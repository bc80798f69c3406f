// The normalizer of BERT: control characters out, spaces around Chinese characters, accents and capitals off.
#include "base/text.hpp"
#include "model/tokenizer/normal_form.hpp"
#include "model/tokenizer/normalizer_step.hpp"
#include "model/tokenizer/unicode.hpp"

namespace cermet {
namespace {

/// As BERT's own code has it, whose ranges are not those of the blocks.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void clean_text(NormalizedText& text) {
  keep_characters(text, [](char32_t c) { return c != 0xFFFD && !is_control(c); });
  map_characters(text, [](std::string& out, char32_t c) { append_utf8(out, is_space(c) ? U' ' : c); });
}

void space_chinese(NormalizedText& text) {
  map_characters(text, [](std::string& out, char32_t c) {
    if (!is_chinese(c)) return append_utf8(out, c);
    out += ' ';
    append_utf8(out, c);
    out += ' ';
  });
}

}  // namespace

NormalizerStep read_bert_normalizer(Json component) {
  const bool clean = component.at("clean_text").as_bool(), chinese = component.at("handle_chinese_chars").as_bool();
  const bool lowercase = component.at("lowercase").as_bool();
  const auto given = component.find("strip_accents");
  const bool accents = given ? given->as_bool() : lowercase;
  return [=](NormalizedText& text, RegexMemory& memory) {
    if (clean) clean_text(text);
    if (chinese) space_chinese(text);
    if (accents) {
      normalize(text.text, NormalForm::d);
      keep_characters(text, [](char32_t c) { return !is_nonspacing_mark(c); });
    }
    if (lowercase) lowercase_step()(text, memory);
  };
}

}  // namespace cermet
