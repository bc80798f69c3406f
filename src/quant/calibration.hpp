// Prompts as the quantizer runs them: validated, and cut into forward passes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/checkpoint/checkpoint.hpp"
#include "quant/pipeline.hpp"

namespace cermet {

/// One forward pass: whole prompts, or a part of one that is longer than a pass. Its tokens are consecutive rows of the
/// hidden states.
struct CalibrationPass {
  struct Part {
    std::size_t prompt = 0;             ///< of CalibrationSet::prompts
    std::int64_t begin = 0, count = 0;  ///< tokens of the prompt
  };
  std::vector<Part> parts;
  std::int64_t first_row = 0, tokens = 0;
  bool heldout = false;  ///< all of its prompts are
};

struct CalibrationSet {
  std::vector<std::vector<std::int32_t>> prompts;  ///< calibration prompts, then held-out ones
  std::size_t heldout_prompts = 0;                 ///< how many of the last ones are held out
  std::vector<CalibrationPass> passes;
  std::int64_t tokens = 0;
  std::int64_t longest = 0;  ///< prompt, in tokens

  /// Rows of held-out tokens are the last ones: [first_heldout_row, tokens).
  std::int64_t first_heldout_row = 0;
};

/// Checks prompts against a model and cuts them into passes of up to `pass_tokens` tokens. Where no held-out prompts
/// are given, every fifth prompt is set aside; a single prompt serves as both. Throws Error naming the prompt that is
/// empty, longer than max_position_embeddings, or has an id outside the vocabulary.
CalibrationSet make_calibration_set(const QuantizeOptions& options, const ModelConfig& config,
                                    std::int64_t pass_tokens);

/// The embeddings of all tokens, float32 [tokens, hidden_size], in the order of passes. Throws Error naming the table
/// where a row is not finite.
std::vector<float> embed(const CalibrationSet& set, const Checkpoint& checkpoint);

}  // namespace cermet
