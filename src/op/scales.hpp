// Scales of the operands of a quantized product: one value, one for each row, or one for each block of 128 reduction
// steps.
#pragma once

#include <optional>

#include "op/products.hpp"

namespace cermet {

inline constexpr std::int64_t scale_block = 128;

/// Where the scale of row `outer` (a row of the left operand, a column of the result) and reduction block kb is in a
/// dense tensor of scales.
struct ScaleGrid {
  std::int64_t group = 0;   ///< adjacent rows that share scales; 0 where all do
  std::int64_t blocks = 1;  ///< along the reduction
  std::int64_t index(std::int64_t outer, std::int64_t kb) const {
    return group == 0 ? 0 : outer / group * blocks + (blocks > 1 ? kb : 0);
  }
  /// Scales of a matrix with this many rows.
  std::int64_t count(std::int64_t rows) const { return group == 0 ? 1 : (rows + group - 1) / group * blocks; }
};

/// Grid of a left operand [rows.., K]: one scale, of any rank; [rows..] or [rows.., 1]; [rows.., K/128] rounded up.
/// Nothing for other dimensions.
std::optional<ScaleGrid> row_scale_grid(const Dims& scale, const Dims& rows, const Dim& reduction);
/// Grid of a weight [N, K]: one scale, of any rank; [N], [N, 1] or [1, N]; [N/128, K/128], both rounded up, which goes
/// before [1, N].
std::optional<ScaleGrid> column_scale_grid(const Dims& scale, const Dim& columns, const Dim& reduction);
/// The same for a stack [E, N, K] of weights, whose scales have E in front; one value each is [E]. The grid is that of
/// one matrix.
std::optional<ScaleGrid> stacked_scale_grid(const Dims& scale, const Dims& weights);

/// int8 goes with int8 and fp8 with fp8; the error names the right operand.
void check_quantized_pair(const Problem& problem, std::size_t left, std::size_t right);

}  // namespace cermet
