// Steps of a pre-tokenizer, by the component that describes them.
#pragma once

#include <functional>
#include <string_view>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/splitter.hpp"

namespace cermet {

struct TextPiece {
  std::string_view text;
  bool at_start = false;  ///< of all that the tokenizer was given
};

/// Calls sink for the pieces of a piece, which are not empty and valid during the call only.
using PreTokenizerStep = std::function<void(TextPiece piece, RegexMemory& memory, FunctionRef<void(TextPiece)> sink)>;

/// Of pieces as they stand in the text.
PreTokenizerStep step_of(Splitter splitter);
PreTokenizerStep read_byte_level(Json component);
PreTokenizerStep read_metaspace(Json component);
PreTokenizerStep read_split(Json component);
PreTokenizerStep read_fixed_length(Json component);

}  // namespace cermet
