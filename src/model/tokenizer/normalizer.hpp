// The `normalizer` of a tokenizer.json: changes of the text before it is split.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/normalizer_step.hpp"

namespace cermet {

class Normalizer {
 public:
  /// Reads the component; nothing means none. Throws Error(unsupported) naming a type that is not implemented.
  explicit Normalizer(std::optional<Json> component);
  bool is_none() const { return steps_.empty(); }
  /// Normalizes valid UTF-8 in place.
  void apply(NormalizedText& text, RegexMemory& memory) const {
    for (const NormalizerStep& step : steps_) step(text, memory);
  }
  std::string normalized(std::string_view text) const;
  /// Whether a step spells bytes as characters.
  bool maps_bytes() const { return maps_bytes_; }

 private:
  void read(Json component);

  std::vector<NormalizerStep> steps_;
  bool maps_bytes_ = false;
};

}  // namespace cermet
