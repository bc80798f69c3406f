// cermet bench model --batch N: speeds with several sequences in every pass.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/engine.hpp"

namespace cermet::cli {

/// Seconds of one round.
struct BatchTimes {
  double prefill = 0;  ///< of all prompts, to the first token of each
  double decode = 0;   ///< of all steps together
};

/// Fills every sequence of the engine with a prompt of its own of `prompt_tokens` tokens, several in a pass where they
/// fit, then decodes `new_tokens` tokens greedily in all sequences at once. `on_step` is called between passes.
BatchTimes time_batch(Engine& engine, std::int64_t prompt_tokens, std::int64_t new_tokens,
                      const std::function<void()>& on_step);

/// Ids that any vocabulary has, in no particular order: `count` of an endless list, from number `first` on.
std::vector<std::int32_t> some_ids(std::int64_t count, std::int64_t vocab_size, std::int64_t first = 0);

}  // namespace cermet::cli
