// The parameters of one sequence of `sample`, read from its operands and checked.
#pragma once

#include "op/schema/problem.hpp"

namespace cermet {

enum SampleOperand : std::size_t {
  sample_logits,
  sample_temperature,
  sample_top_k,
  sample_top_p,
  sample_min_p,
  sample_penalty,
  sample_previous,
  sample_seeds,
  sample_steps
};

struct SampleParameters {
  float temperature = 1, top_p = 1, min_p = 0, penalty = 1;
  std::int64_t top_k = 0;  ///< 0: all
  std::uint64_t seed = 0, step = 0;

  /// Parameters of sequence b. Throws Error(invalid_argument) naming operand, sequence and value where one is out of
  /// its range.
  SampleParameters(std::span<const TensorView> inputs, std::int64_t b);
};

}  // namespace cermet
