// Steps of normalizers that strip, prepend and replace.
#include <memory>

#include "base/text.hpp"
#include "model/tokenizer/normalizer_step.hpp"
#include "model/tokenizer/pieces.hpp"
#include "model/tokenizer/unicode.hpp"

namespace cermet {

NormalizerStep read_strip(Json component) {
  const bool left = component.at("strip_left").as_bool(), right = component.at("strip_right").as_bool();
  return [=](NormalizedText& text, RegexMemory&) {
    std::string_view kept = text.text;
    const std::size_t before = kept.size();
    while (left && !kept.empty() && is_space(first_utf8_unit(kept).code_point))
      kept.remove_prefix(first_utf8_unit(kept).size);
    if (kept.size() < before) text.keeps_start = false;
    while (right && !kept.empty() && is_space(last_character(kept).code_point))
      kept.remove_suffix(last_character(kept).size);
    text.text = std::string(kept);
  };
}

NormalizerStep read_prepend(Json component) {
  const std::string prefix(component.at("prepend").as_string());
  return [=](NormalizedText& text, RegexMemory&) {
    if (!text.text.empty()) text.text.insert(0, prefix);
  };
}

NormalizerStep read_replace(Json component) {
  const auto regex = std::make_shared<const Regex>(read_pattern(component));
  const std::string content(component.at("content").as_string());
  return [=](NormalizedText& text, RegexMemory& memory) {
    std::string replaced;
    Pieces pieces(*regex, text.text, memory);
    while (const auto piece = pieces.next()) {
      const std::string_view part = std::string_view(text.text).substr(piece->begin, piece->end - piece->begin);
      replaced += piece->is_match ? content : part;
      // What replaces several characters counts as the last of them, and what is removed as gone.
      if (piece->is_match && piece->begin == 0 && !part.empty() &&
          (content.empty() || first_utf8_unit(part).size < part.size()))
        text.keeps_start = false;
    }
    text.text = std::move(replaced);
  };
}

}  // namespace cermet
