#include "model/tokenizer/pre_tokenizer.hpp"

#include "base/text.hpp"
#include "model/tokenizer/unicode.hpp"

namespace cermet {
namespace {

constexpr std::size_t most_steps = 64;

PreTokenizerStep split_at(std::function<bool(char32_t)> is_match, SplitBehavior behavior) {
  return step_of(Splitter(Splitter::at(std::move(is_match)), behavior));
}

/// Words, and runs of what is neither word nor space.
PreTokenizerStep whitespace_step() {
  const auto find = [](std::string_view text, RegexMemory&, FunctionRef<void(SplitPiece)> sink) {
    const auto kind = [](char32_t c) { return is_word(c) ? 1 : is_space(c) ? 0 : 2; };
    for (std::size_t begin = 0; begin < text.size();) {
      const int first = kind(first_utf8_unit(text.substr(begin)).code_point);
      std::size_t end = begin;
      while (end < text.size() && kind(first_utf8_unit(text.substr(end)).code_point) == first)
        end += first_utf8_unit(text.substr(end)).size;
      sink({begin, end, first == 0});
      begin = end;
    }
  };
  return step_of(Splitter(find, SplitBehavior::removed));
}

PreTokenizerStep read_digits(Json component) {
  const bool individual = component.at("individual_digits").as_bool();
  return split_at(is_numeric, individual ? SplitBehavior::isolated : SplitBehavior::contiguous);
}

PreTokenizerStep read_punctuation(Json component) {
  const auto behavior = component.find("behavior");
  return split_at(is_punctuation, behavior ? read_behavior(*behavior) : SplitBehavior::isolated);
}

PreTokenizerStep read_delimiter(Json component) {
  const Json field = component.at("delimiter");
  const std::string_view text = field.as_string();
  if (text.empty() || first_utf8_unit(text).size != text.size()) field.unexpected("one character");
  return split_at([delimiter = first_utf8_unit(text).code_point](char32_t c) { return c == delimiter; },
                  SplitBehavior::removed);
}

}  // namespace

PreTokenizerStep step_of(Splitter splitter) {
  return [splitter = std::move(splitter)](TextPiece piece, RegexMemory& memory, FunctionRef<void(TextPiece)> sink) {
    splitter.split(piece.text, memory, [&](std::size_t begin, std::size_t end) {
      sink({piece.text.substr(begin, end - begin), piece.at_start && begin == 0});
    });
  };
}

PreTokenizer::PreTokenizer(std::optional<Json> component) {
  if (component) read(*component);
}

void PreTokenizer::read(Json component) {
  const Json type = component.at("type");
  const std::string_view name = type.as_string();
  if (name == "Sequence") {
    for (Json step : component.at("pretokenizers").as_array()) read(step);
    return;
  }
  if (steps_.size() >= most_steps)
    component.refuse(fmt::format("expected at most {} steps, found more", most_steps), Status::unsupported);
  const auto add = [&](PreTokenizerStep step) { steps_.push_back(std::move(step)); };
  maps_bytes_ = maps_bytes_ || name == "ByteLevel";
  if (name == "ByteLevel") return add(read_byte_level(component));
  if (name == "Metaspace") return add(read_metaspace(component));
  if (name == "Split") return add(read_split(component));
  if (name == "Digits") return add(read_digits(component));
  if (name == "Punctuation") return add(read_punctuation(component));
  if (name == "Whitespace") return add(whitespace_step());
  if (name == "WhitespaceSplit") return add(split_at(is_space, SplitBehavior::removed));
  if (name == "CharDelimiterSplit" || name == "Delimiter") return add(read_delimiter(component));
  if (name == "FixedLength") return add(read_fixed_length(component));
  if (name != "BertPreTokenizer")
    type.unexpected(
        "\"ByteLevel\", \"Metaspace\", \"Split\", \"Digits\", \"Punctuation\", \"Whitespace\", \"WhitespaceSplit\", "
        "\"CharDelimiterSplit\", \"FixedLength\", "
        "\"BertPreTokenizer\" or \"Sequence\"",
        Status::unsupported);
  add(split_at(is_space, SplitBehavior::removed));
  add(split_at(is_punctuation, SplitBehavior::isolated));
}

void PreTokenizer::apply(std::size_t index, TextPiece text, RegexMemory& memory,
                         FunctionRef<void(std::string_view)> sink) const {
  if (text.text.empty()) return;
  if (index == steps_.size()) return sink(text.text);
  steps_[index](text, memory, [&](TextPiece piece) { apply(index + 1, piece, memory, sink); });
}

}  // namespace cermet
