// The operators that a mixture of experts is made of, for kernels that run those in a row.
#pragma once

#include <array>
#include <optional>

#include "op/schema/problem.hpp"

namespace cermet {

enum MixturePart : std::size_t {
  part_router,
  part_gating,
  part_permute,
  part_gate_up,
  part_down,
  part_unpermute,
  mixture_part_count
};

/// Each of moe's or ep_moe's parts, tokens of all ranks as one batch: logits [T, E] in float32; weights and ids [T, k];
/// rows sorted by expert; products with the gate and up rows, and after the gate, which is no operator, with the down
/// rows, both in float32; the weighted sum. Of ep_moe with a rank's own tokens the products are those of the rank's
/// experts with as many rows as all ranks may send it.
std::array<Problem, mixture_part_count> mixture_parts(const Problem& p);

/// The product that multiplies by this operand of the mixture; mixture_part_count for operands that are no weights.
MixturePart part_of_weight(std::size_t operand);

/// What quantizes the rows of x, [T, H], and those between the products, [R, F], where the weights that they meet are
/// quantized; what rounds the latter where attribute hidden_dtype says so.
struct MixtureQuantizers {
  std::optional<Problem> x, hidden;
};
MixtureQuantizers mixture_quantizers(const Problem& p);

/// Rows that a rank with tokens of its own may have to hold for each of a rank's tokens: those that it sends, or all
/// that ranks with as many may send it.
std::int64_t exchanged_rows_per_token(const Problem& p);

}  // namespace cermet
