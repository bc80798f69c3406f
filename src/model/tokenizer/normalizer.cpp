#include "model/tokenizer/normalizer.hpp"

#include "model/tokenizer/normal_form.hpp"

namespace cermet {
namespace {

constexpr std::size_t most_normalizers = 64;

NormalizerStep normal_form_step(NormalForm form) {
  return [form](NormalizedText& text, RegexMemory&) { normalize(text.text, form); };
}

NormalizerStep read_normalizer_step(Json component) {
  const Json type = component.at("type");
  const std::string_view name = type.as_string();
  if (name == "NFC") return normal_form_step(NormalForm::c);
  if (name == "NFD") return normal_form_step(NormalForm::d);
  if (name == "NFKC") return normal_form_step(NormalForm::kc);
  if (name == "NFKD") return normal_form_step(NormalForm::kd);
  if (name == "Lowercase") return lowercase_step();
  if (name == "Strip") return read_strip(component);
  if (name == "StripAccents") return strip_accents_step();
  if (name == "Replace") return read_replace(component);
  if (name == "Prepend") return read_prepend(component);
  if (name == "BertNormalizer") return read_bert_normalizer(component);
  if (name == "Nmt") return nmt_step();
  if (name == "Precompiled") return read_precompiled_map(component);
  if (name == "ByteLevel") return byte_level_step();
  type.unexpected(
      "\"NFC\", \"NFD\", \"NFKC\", \"NFKD\", \"Lowercase\", \"Strip\", \"StripAccents\", \"Replace\", \"Prepend\", "
      "\"BertNormalizer\", \"Nmt\", "
      "\"Precompiled\", \"ByteLevel\" or \"Sequence\"",
      Status::unsupported);
}

}  // namespace

Normalizer::Normalizer(std::optional<Json> component) {
  if (component) read(*component);
}

void Normalizer::read(Json component) {
  const std::string_view type = component.at("type").as_string();
  if (type == "Sequence") {
    for (Json step : component.at("normalizers").as_array()) read(step);
    return;
  }
  if (steps_.size() == most_normalizers)
    component.refuse(fmt::format("expected at most {} steps, found more", most_normalizers), Status::unsupported);
  maps_bytes_ = maps_bytes_ || type == "ByteLevel";
  steps_.push_back(read_normalizer_step(component));
}

std::string Normalizer::normalized(std::string_view text) const {
  NormalizedText made{std::string(text)};
  RegexMemory memory;
  apply(made, memory);
  return std::move(made.text);
}

}  // namespace cermet
