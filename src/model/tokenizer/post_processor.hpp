// The `post_processor` of a tokenizer.json: the special tokens that stand before and after a text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

struct PostProcessor {
  std::vector<std::int32_t> before, after;

  /// Reads the component; nothing means none. Templates give ids; ByteLevel only concerns offsets, which are not kept.
  /// Throws Error(unsupported) naming any other component, Error(invalid_file) for a template without its text or with
  /// ids that the vocabulary lacks.
  static PostProcessor read(std::optional<Json> component, const Vocabulary& vocabulary);
};

}  // namespace cermet
