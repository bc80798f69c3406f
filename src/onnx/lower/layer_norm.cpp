// Normalizations over the last axes.
#include <numeric>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

Ints axes_from(int first, int rank) {
  Ints axes(static_cast<std::size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

}  // namespace

void lower_layer_normalization(Lowering& l) {
  const Operand x = l.in(0), scale = l.in(1), bias = l.in_or_none(2);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", -1), rank);
  const double eps = l.number("epsilon", 1e-5);
  const Dims dims = l.dims(x), tail(dims.begin() + axis, dims.end());
  const bool fits = l.dims(scale) == tail && (!bias || l.dims(bias) == tail) && dtypes::real.contains(l.dtype(x));
  if (fits)
    l.set(0, l.op(OpKind::layer_norm, bias ? std::vector<Operand>{x, scale, bias} : std::vector<Operand>{x, scale},
                  {{"eps", eps}}));
  if (fits && !l.wants(1) && !l.wants(2)) return;
  const Ints axes = axes_from(axis, rank);
  const Operand wide = l.widened(x);
  const Operand mean = l.reduce(OpKind::reduce_mean, wide, axes, true), centred = l.binary(OpKind::sub, wide, mean);
  const Operand variance = l.reduce(OpKind::reduce_mean, l.unary(OpKind::square, centred), axes, true);
  const Operand inverse = l.unary(OpKind::reciprocal, l.unary(OpKind::sqrt, l.binary(OpKind::add, variance, eps)));
  if (!fits) {
    Operand y = l.binary(OpKind::mul, l.cast(l.binary(OpKind::mul, centred, inverse), l.dtype(x)), scale);
    if (bias) y = l.binary(OpKind::add, y, bias);
    l.set(0, y);
  }
  l.set(1, mean);
  l.set(2, inverse);
}

void lower_rms_normalization(Lowering& l) {
  const Operand x = l.in(0), scale = l.in(1);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", -1), rank);
  const double eps = l.number("epsilon", 1e-5);
  const Dims dims = l.dims(x), tail(dims.begin() + axis, dims.end());
  if (l.dims(scale) == tail && dtypes::real.contains(l.dtype(x)))
    return l.set(0, l.op(OpKind::rms_norm, {x, scale}, {{"eps", eps}}));
  const Operand wide = l.widened(x);
  const Operand mean = l.reduce(OpKind::reduce_mean, l.unary(OpKind::square, wide), axes_from(axis, rank), true);
  const Operand inverse = l.unary(OpKind::reciprocal, l.unary(OpKind::sqrt, l.binary(OpKind::add, mean, eps)));
  l.set(0, l.binary(OpKind::mul, l.cast(l.binary(OpKind::mul, wide, inverse), l.dtype(x)), scale));
}

}  // namespace cermet::onnx
