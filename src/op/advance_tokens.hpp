// Operands of advance_tokens, and what its kernels check alike.
#pragma once

#include <span>

#include "base/error.hpp"
#include "base/tensor.hpp"
#include "op/operands.hpp"

namespace cermet::advance {

using enum op::advance_tokens::Operand;

inline constexpr std::int64_t most_block_size = 1 << 20;

/// Lists belong to tokens, rows of logits and sequences, of which a decoding step has as many: known when it runs.
inline void check_sizes(std::span<const TensorView> inputs) {
  const std::int64_t sequences = inputs[chosen].shape[0];
  for (const std::size_t operand : {ids, context_lens, draws})
    if (inputs[operand].shape[0] != sequences)
      fail(Status::invalid_argument, "advance_tokens: operand {}: expected {} elements (chosen tokens), found {}",
           operand, sequences, inputs[operand].shape[0]);
  const Shape& rows = inputs[made].shape;
  if (rows[0] < 1 || rows[1] < sequences)
    fail(Status::invalid_argument, "advance_tokens: operand {} (made): expected at least 1 row of {} columns, found {}",
         std::size_t{made}, sequences, rows.to_string());
}

}  // namespace cermet::advance
