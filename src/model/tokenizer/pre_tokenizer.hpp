// The `pre_tokenizer` of a tokenizer.json: cuts text into the pieces that the model takes each by itself.
#pragma once

#include <optional>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/pre_tokenizer_step.hpp"

namespace cermet {

class PreTokenizer {
 public:
  /// Reads the component; nothing means that a text is one piece. Throws Error(unsupported) naming a type that is not
  /// implemented.
  explicit PreTokenizer(std::optional<Json> component);

  /// Calls sink for the pieces of valid UTF-8 in order; a piece is valid during the call only.
  void split(TextPiece text, RegexMemory& memory, FunctionRef<void(std::string_view)> sink) const {
    apply(0, text, memory, sink);
  }
  /// Whether a step spells bytes as characters.
  bool maps_bytes() const { return maps_bytes_; }

 private:
  void read(Json component);
  void apply(std::size_t index, TextPiece text, RegexMemory& memory, FunctionRef<void(std::string_view)> sink) const;

  std::vector<PreTokenizerStep> steps_;
  bool maps_bytes_ = false;
};

}  // namespace cermet
