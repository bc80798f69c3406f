// com.microsoft's operators from quantized values to quantized values: dequantized, computed in float32, quantized
// again.
#include "onnx/lower/fused.hpp"

namespace cermet::onnx {
namespace {

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

/// Operand i in float32, of the scale in operand i + 1 and the zero point in operand i + 2.
Operand dequantized(Lowering& l, std::size_t i) {
  const Operand x = l.in(i);
  if (l.dtype(x) == DType::f32) return x;
  if (!is_byte(l.dtype(x))) l.unsupported("operand {}: expected 8-bit integers, found {}", i, name_of(l.dtype(x)));
  l.expect(product(l.dims(l.in(i + 1))) == Dim(1), "operand {}: expected one scale, found {}", i + 1,
           l.type(l.in(i + 1)).to_string());
  const Dims dims = l.dims(x);
  std::vector<Operand> operands{dims.empty() ? l.reshape(x, {1}) : x, l.reshape(l.cast(l.in(i + 1), DType::f32), {})};
  if (l.has(i + 2)) operands.push_back(l.reshape(l.in(i + 2), {}));
  return l.reshape(l.op(OpKind::dequantize, operands, {{"granularity", "broadcast"}}), dims);
}

/// y as result 0, quantized by the scale in operand i and the zero point in the next; of its type, or of `type` where
/// there is none.
void set_quantized(Lowering& l, Operand y, std::size_t i, DType type) {
  const DType to = l.has(i + 1) ? l.dtype(l.in(i + 1)) : type;
  if (!is_byte(to)) l.unsupported("operand {}: expected 8-bit integers, found {}", i + 1, name_of(to));
  const Dims dims = l.dims(y);
  std::vector<Operand> operands{dims.empty() ? l.reshape(y, {1}) : y, l.reshape(l.cast(l.in(i), DType::f32), {})};
  if (l.has(i + 1)) {
    operands.push_back({});
    operands.push_back(l.reshape(l.in(i + 1), {}));
  }
  l.set(0, l.reshape(l.op(OpKind::quantize, operands, {{"out_dtype", std::string(name_of(to))}}), dims));
}

void binary(Lowering& l, OpKind kind) {
  set_quantized(l, l.binary(kind, dequantized(l, 0), dequantized(l, 3)), 6, l.dtype(l.in(0)));
}

}  // namespace

void lower_qlinear_add(Lowering& l) { binary(l, OpKind::add); }
void lower_qlinear_mul(Lowering& l) { binary(l, OpKind::mul); }

void lower_qlinear_sigmoid(Lowering& l) {
  set_quantized(l, l.unary(OpKind::sigmoid, dequantized(l, 0)), 3, l.dtype(l.in(0)));
}

void lower_qlinear_leaky_relu(Lowering& l) {
  set_quantized(l, l.op(OpKind::leaky_relu, {dequantized(l, 0)}, {{"alpha", l.number("alpha", 0.01)}}), 3,
                l.dtype(l.in(0)));
}

void lower_qlinear_softmax(Lowering& l) {
  Operand x = dequantized(l, 0);
  const Dims dims = l.dims(x);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", -1), rank);
  if (l.integer("opset", 13) >= 13) {
    const Operand y = l.move_axis(l.unary(OpKind::softmax, l.move_axis(x, axis, rank - 1)), rank - 1, axis);
    return set_quantized(l, y, 3, l.dtype(l.in(0)));
  }
  x = l.reshape(x, {product({dims.begin(), dims.begin() + axis}), product({dims.begin() + axis, dims.end()})});
  set_quantized(l, l.reshape(l.unary(OpKind::softmax, x), dims), 3, l.dtype(l.in(0)));
}

void lower_qlinear_global_average_pool(Lowering& l) {
  const Operand x = dequantized(l, 0);
  const bool last = l.integer("channels_last", 0) != 0;
  Ints axes;
  for (int a = 2; a < l.rank(x); ++a) axes.push_back(last ? a - 1 : a);
  set_quantized(l, l.reduce(OpKind::reduce_mean, x, axes, true), 3, l.dtype(l.in(0)));
}

void lower_qlinear_average_pool(Lowering& l) {
  const bool last = l.integer("channels_last", 0) != 0;
  const Operand x = dequantized(l, 0), y = average_pool(l, last ? channels_second(l, x) : x);
  set_quantized(l, last ? channels_last(l, y) : y, 3, l.dtype(l.in(0)));
}

void lower_qlinear_reduce_mean(Lowering& l) {
  const Operand x = dequantized(l, 0);
  Ints axes = l.integers("axes");
  for (std::int64_t& a : axes) a = l.axis(a, l.rank(x));
  if (axes.empty())
    for (int a = 0; a < l.rank(x); ++a) axes.push_back(a);
  set_quantized(l, l.reduce(OpKind::reduce_mean, x, axes, l.integer("keepdims", 1) != 0), 3, l.dtype(l.in(0)));
}

/// Operands: scale and zero point of the result, then each value with its own.
void lower_qlinear_concat(Lowering& l) {
  l.expect(l.inputs() >= 5 && l.inputs() % 3 == 2,
           "expected a scale, a zero point and three operands for each value, found {} operands", l.inputs());
  std::vector<Operand> values;
  for (std::size_t i = 2; i < l.inputs(); i += 3) values.push_back(dequantized(l, i));
  set_quantized(l, l.concat(values, l.axis(l.integer("axis", 0), l.rank(values[0]))), 0, l.dtype(l.in(2)));
}

void lower_qlinear_where(Lowering& l) {
  set_quantized(l, l.op(OpKind::where, {l.in(0), dequantized(l, 1), dequantized(l, 4)}), 7, l.dtype(l.in(1)));
}

}  // namespace cermet::onnx
