#include "model/tokenizer/normalizer.hpp"

#include "model/tokenizer/unicode.hpp"

namespace cermet {

Normalizer::Normalizer(std::optional<Json> component) {
  if (!component) return;
  const Json type = component->at("type");
  if (type.as_string() == "NFC") {
    nfc_ = true;
  } else if (type.as_string() == "Sequence") {
    for (Json step : component->at("normalizers").as_array()) nfc_ = Normalizer(step).nfc_ || nfc_;
  } else {
    type.unexpected("\"NFC\" or \"Sequence\"", Status::unsupported);
  }
}

std::string_view Normalizer::apply(std::string_view text, std::string& buffer) const { return nfc_ ? to_nfc(text, buffer) : text; }

}  // namespace cermet
