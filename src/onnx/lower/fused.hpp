// Operators that fused ones begin with, and what they end with.
#pragma once

#include "onnx/lowering.hpp"

namespace cermet::onnx {

/// The node's Gemm of operands 0 to 2, its Conv of x by operands 1 and 2, its AveragePool of x: attributes are those of
/// the standard operator.
Operand general_product(Lowering& l);
Operand convolution(Lowering& l, Operand x);
Operand average_pool(Lowering& l, Operand x);

/// x [B, .., C] with its channels second, and back.
Operand channels_second(Lowering& l, Operand x);
Operand channels_last(Lowering& l, Operand x);

/// The function that attribute activation names, with parameters in their order; x itself where there is none.
Operand activated(Lowering& l, Operand x, const Floats& parameters);

}  // namespace cermet::onnx
