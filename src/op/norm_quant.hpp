// Root-mean-square normalization with a quantized result: what rms_norm_quant and add_rms_norm_quant share.
#pragma once

#include "op/norm.hpp"
#include "op/quantization.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

/// Operand numbers: `first` is that of weight, the others follow.
struct NormQuantOperands {
  std::size_t weight, smooth, scale, offset;
  explicit constexpr NormQuantOperands(std::size_t first)
      : weight(first), smooth(first + 1), scale(first + 2), offset(first + 3) {}
};

/// Operand and attribute specifications that follow those of the operator itself.
std::vector<OperandSpec> norm_quant_inputs();
std::vector<AttributeSpec> norm_quant_attributes();
/// Checks them and returns the types of the quantized values, then of scale and zero point where these are results (no
/// scale is given).
std::vector<TensorType> infer_norm_quant(const Problem& problem, NormQuantOperands operands);
/// Reference of a row: normalizes `row_values` (float64 sums of the row) and writes row `row` of the quantized values
/// and scales.
void norm_quant_row(const ReferenceCall& call, NormQuantOperands operands, std::span<const double> row_values,
                    std::int64_t row, const QuantizedViews& out, std::size_t scale_output);
/// Cases of either operator: `leading` operands come before weight and have the dimensions of x; with_f32_residual
/// makes the last of them float32.
std::vector<Case> norm_quant_cases(std::size_t leading);

}  // namespace cermet
