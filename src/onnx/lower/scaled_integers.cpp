// com.microsoft's products of 8-bit integers whose sums are scaled at once.
#include "onnx/lower/quantized_product.hpp"

namespace cermet::onnx {
namespace {

/// One number of an operand that might have more: what has one for each row or column is refused.
Operand one_number(Lowering& l, Operand x, std::string_view name) {
  if (product(l.dims(x)) != Dim(1)) l.unsupported("{}: expected one number, found {}", name, l.type(x).to_string());
  return l.reshape(x, {});
}

/// Of b [.., K, N]: one number, or one a column, [N] or [.., 1, N].
Operand per_column(Lowering& l, Operand x) { return product(l.dims(x)) == Dim(1) ? l.reshape(x, {}) : x; }

struct IntegerProduct {
  Operand a, a_scale, a_zero, b, b_scale, b_zero, bias;  ///< zero points and bias may be none
};

/// a b as scale times an exact sum, in float32.
Operand scaled_product(Lowering& l, const IntegerProduct& p) {
  const Operand a_zero = p.a_zero ? one_number(l, p.a_zero, "a_zero_point") : Operand{},
                b_zero = p.b_zero ? per_column(l, p.b_zero) : Operand{};
  const Operand sum = l.cast(integer_matmul(l, p.a, a_zero, p.b, b_zero), DType::f32);
  const Operand scale = l.binary(OpKind::mul, l.cast(one_number(l, p.a_scale, "a_scale"), DType::f32),
                                 l.cast(per_column(l, p.b_scale), DType::f32));
  const Operand y = l.binary(OpKind::mul, sum, scale);
  return p.bias ? l.binary(OpKind::add, y, l.cast(p.bias, DType::f32)) : y;
}

}  // namespace

void lower_matmul_integer_to_float(Lowering& l) {
  const Operand y =
      scaled_product(l, {l.in(0), l.in(2), l.in_or_none(4), l.in(1), l.in(3), l.in_or_none(5), l.in_or_none(6)});
  l.set(0, l.cast(y, l.dtype(l.in(2))));
}

void lower_dynamic_quantize_matmul(Lowering& l) {
  const QuantizedFrom q = dynamically_quantized(l, l.in(0));
  l.set(0, scaled_product(l, {q.x, q.scale, q.zero_point, l.in(1), l.in(2), l.in_or_none(3), l.in_or_none(4)}));
}

/// Operand C is i32, of scale alpha * a_scale * b_scale.
void lower_qgemm(Lowering& l) {
  Operand a = l.in(0), b = l.in(3);
  if (l.integer("transA", 0) != 0) a = l.transpose(a, {1, 0});
  if (l.integer("transB", 0) != 0) b = l.transpose(b, {1, 0});
  Operand sum = integer_matmul(l, a, one_number(l, l.in(2), "a_zero_point"), b, per_column(l, l.in(5)));
  if (l.has(6)) sum = l.binary(OpKind::add, sum, l.in(6));
  Operand scale = l.binary(OpKind::mul, one_number(l, l.in(1), "a_scale"), per_column(l, l.in(4)));
  if (l.number("alpha", 1) != 1) scale = l.binary(OpKind::mul, scale, l.number("alpha", 1));
  const Operand y = l.binary(OpKind::mul, l.cast(sum, DType::f32), scale);
  if (!l.has(7)) return l.set(0, y);
  std::vector<Operand> operands{y, one_number(l, l.in(7), "y_scale")};
  const DType to = l.has(8) ? l.dtype(l.in(8)) : l.dtype(a);
  if (l.has(8)) {
    operands.push_back({});
    operands.push_back(one_number(l, l.in(8), "y_zero_point"));
  }
  l.set(0, l.op(OpKind::quantize, operands, {{"out_dtype", std::string(name_of(to))}}));
}

}  // namespace cermet::onnx
