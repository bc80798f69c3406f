// Products of values that DequantizeLinear made, on the integers themselves.
#pragma once

#include <optional>
#include <utility>

#include "onnx/lowering.hpp"

namespace cermet::onnx {

/// x, of 8-bit integers, as i8 and what its zero point is then, in i32: u8 is less by 128.
std::pair<Operand, Operand> as_signed(Lowering& l, Operand x, Operand zero);
bool is_zero(Lowering& l, Operand x);

/// rows times a weight [K, N], or [N, K] transposed, plus bias[N] or nothing: scaled_mm, where rows have one scale and
/// the weight is symmetric with one or one a column; nothing elsewhere.
std::optional<Operand> quantized_linear(Lowering& l, Operand rows, Operand weight, bool transposed, Operand bias);

/// matmul of NumPy on 8-bit integers, in i32: operands of one dimension are a row, a column. A zero point of a has one
/// number or one a row, of b one number or one a column.
Operand integer_matmul(Lowering& l, Operand a, Operand a_zero, Operand b, Operand b_zero);

/// x of float32 as DynamicQuantizeLinear makes it: u8, with one scale and zero point.
QuantizedFrom dynamically_quantized(Lowering& l, Operand x);

/// Attributes of a convolution over two axes.
struct PlaneWindow {
  Ints strides, dilations, pads;
  std::int64_t group = 1;
};
/// The same of a convolution of [B, C, H, W]: the elements under each window side by side, times the weight.
std::optional<Operand> quantized_conv(Lowering& l, Operand x, Operand weight, Operand bias, const PlaneWindow& window);

}  // namespace cermet::onnx
