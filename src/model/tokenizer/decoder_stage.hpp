// Stages of a decoder, by the component that describes them. Each takes a list of tokens, in parts as they arrive, and
// hands a list on.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "io/json_file.hpp"

namespace cermet {

class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  /// A part of a token, or all of it.
  virtual void part(std::string_view text) = 0;
  virtual void end_token() = 0;
  virtual void finish() = 0;
};

/// What all stages of a decoding see.
struct DecoderContext {
  bool bytes = false;     ///< exact bytes are wanted, else valid UTF-8
  bool verbatim = false;  ///< the token that comes in is
};

/// Makes a stage that hands on to another, both of which outlive it.
using MakeStage = std::function<std::unique_ptr<DecoderStage>(DecoderStage& next, const DecoderContext& context)>;

MakeStage byte_level_stage();
MakeStage byte_fallback_stage();
MakeStage fuse_stage();
MakeStage joined_stage();  ///< a space between tokens
MakeStage read_bpe_stage(Json component);
MakeStage read_metaspace_stage(Json component);
MakeStage read_replace_stage(Json component);
MakeStage read_strip_stage(Json component);
MakeStage read_word_piece_stage(Json component);

}  // namespace cermet
