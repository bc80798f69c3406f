// Matrix products.
#include "onnx/lower/fused.hpp"
#include "onnx/lower/quantized_product.hpp"

namespace cermet::onnx {
namespace {

/// Rows times a weight: the form whose weights are packed once.
bool is_weight(Lowering& l, Operand b) { return l.is_known(b) && l.rank(b) == 2 && dtypes::real.contains(l.dtype(b)); }

}  // namespace

void lower_matmul(Lowering& l) {
  Operand a = l.in(0), b = l.in(1);
  if (const std::optional<Operand> y = quantized_linear(l, a, b, false, {})) return l.set(0, *y);
  if (is_weight(l, b) && l.rank(a) >= 1 && dtypes::real.contains(l.dtype(a)))
    return l.set(0, l.op(OpKind::linear, {a, l.transpose(b, {1, 0})}));
  const bool row = l.rank(a) == 1, column = l.rank(b) == 1;
  if (row) a = l.unsqueeze(a, {0});
  if (column) b = l.unsqueeze(b, {1});
  Operand y = l.op(OpKind::matmul, {a, b});
  if (column) y = l.squeeze(y, {l.rank(y) - 1});
  if (row) y = l.squeeze(y, {l.rank(y) - (column ? 1 : 2)});
  l.set(0, y);
}

Operand general_product(Lowering& l) {
  const Operand a = l.in(0), b = l.in(1), c = l.in_or_none(2);
  const double alpha = l.number("alpha", 1), beta = l.number("beta", 1);
  const bool transpose_a = l.integer("transA", 0) != 0, transpose_b = l.integer("transB", 0) != 0;
  if (is_weight(l, b) && dtypes::real.contains(l.dtype(a)) && alpha == 1 && (!c || beta == 1)) {
    const Operand weight = transpose_b ? b : l.transpose(b, {1, 0});
    const Operand rows = transpose_a ? l.transpose(a, {1, 0}) : a;
    const bool is_bias = c && l.dims(c) == Dims{l.dim(weight, 0)};
    if (!transpose_a && (!c || is_bias))
      if (const std::optional<Operand> y = quantized_linear(l, a, b, transpose_b, c)) return *y;
    Operand y =
        l.op(OpKind::linear, is_bias ? std::vector<Operand>{rows, weight, c} : std::vector<Operand>{rows, weight});
    if (c && !is_bias) y = l.binary(OpKind::add, y, c);
    return y;
  }
  Operand y = l.op(OpKind::matmul, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  if (alpha != 1) y = l.binary(OpKind::mul, y, alpha);
  if (c && beta != 0) y = l.binary(OpKind::add, y, beta == 1 ? c : l.binary(OpKind::mul, c, beta));
  return y;
}

void lower_gemm(Lowering& l) { l.set(0, general_product(l)); }

}  // namespace cermet::onnx
