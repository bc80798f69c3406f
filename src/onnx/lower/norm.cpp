// Normalizations of channels, of one axis, and of axes that are given.
#include <algorithm>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// A vector of channels, to be multiplied with [N, C, ..]; before opset 9 [C, ..] where the attribute spatial is 0.
Operand per_channel(Lowering& l, Operand vector, int rank) {
  Dims dims(static_cast<std::size_t>(rank), 1);
  l.expect(l.rank(vector) >= 1 && l.rank(vector) < rank, "expected a number for each channel, found {}",
           l.type(vector).to_string());
  for (int a = 0; a < l.rank(vector); ++a) dims[static_cast<std::size_t>(a) + 1] = l.dim(vector, a);
  return l.reshape(vector, dims);
}

}  // namespace

void lower_batch_normalization(Lowering& l) {
  const Operand x = l.in(0);
  if (l.integer("training_mode", 0) != 0 || l.wants(1)) l.unsupported("training mode is not supported");
  const Operand wide_scale = l.widened(l.in(1)), wide_bias = l.widened(l.in(2)), mean = l.widened(l.in(3)),
                variance = l.widened(l.in(4));
  const DType wide = l.dtype(variance);
  const Operand inverse =
      l.unary(OpKind::reciprocal, l.unary(OpKind::sqrt, l.binary(OpKind::add, variance, l.number("epsilon", 1e-5))));
  const Operand factor = l.binary(OpKind::mul, l.cast(wide_scale, wide), inverse);
  const Operand offset =
      l.binary(OpKind::sub, l.cast(wide_bias, wide), l.binary(OpKind::mul, l.cast(mean, wide), factor));
  const int rank = l.rank(x);
  if (rank < 2)
    return l.set(0, l.cast(l.binary(OpKind::add, l.binary(OpKind::mul, l.cast(x, wide), factor), offset), l.dtype(x)));
  const Operand y = l.binary(OpKind::add, l.binary(OpKind::mul, l.cast(x, wide), per_channel(l, factor, rank)),
                             per_channel(l, offset, rank));
  l.set(0, l.cast(y, l.dtype(x)));
}

void lower_instance_normalization(Lowering& l) {
  l.set(0, l.op(OpKind::instance_norm, {l.in(0), l.in(1), l.in(2)}, {{"eps", l.number("epsilon", 1e-5)}}));
}

/// Scale and bias of each group in opset 18, of each channel later.
void lower_group_normalization(Lowering& l) {
  const Operand x = l.in(0);
  const std::int64_t groups = l.integer("num_groups", 1);
  Operand scale = l.in(1), bias = l.in(2);
  if (l.version() < 21) {
    const Dim channels = l.dim(x, 1);
    const auto spread = [&](Operand v) {
      return l.reshape(
          l.expand(l.unsqueeze(v, {1}), {groups, l.constant(channels) / std::max<std::int64_t>(groups, 1)}),
          {channels});
    };
    scale = spread(scale);
    bias = spread(bias);
  }
  l.set(0, l.op(OpKind::group_norm, {x, scale, bias}, {{"groups", groups}, {"eps", l.number("epsilon", 1e-5)}}));
}

void lower_lp_normalization(Lowering& l) {
  const Operand x = l.in(0);
  const std::int64_t p = l.integer("p", 2), axis = l.axis(l.integer("axis", -1), l.rank(x));
  l.expect(p == 1 || p == 2, "attribute p: expected 1 or 2, found {}", p);
  Operand norm = l.reduce(OpKind::reduce_sum, l.unary(p == 1 ? OpKind::abs : OpKind::square, x), {axis}, true);
  if (p == 2) norm = l.unary(OpKind::sqrt, norm);
  const Operand none = l.binary(OpKind::equal, norm, 0);
  l.set(0, l.op(OpKind::where, {none, l.scalar(l.dtype(x), 0), l.binary(OpKind::div, x, norm)}));
}

void lower_mean_variance_normalization(Lowering& l) {
  const Operand x = l.in(0);
  Ints axes = l.integers("axes", {0, 2, 3});
  for (std::int64_t& a : axes) a = l.axis(a, l.rank(x));
  const Operand centred = l.binary(OpKind::sub, x, l.reduce(OpKind::reduce_mean, x, axes, true));
  const Operand deviation =
      l.unary(OpKind::sqrt, l.reduce(OpKind::reduce_mean, l.unary(OpKind::square, centred), axes, true));
  l.set(0, l.binary(OpKind::div, centred, l.binary(OpKind::add, deviation, 1e-9)));
}

/// Squares of neighbouring channels, as a mean over windows of the channels' axis.
void lower_lrn(Lowering& l) {
  const Operand x = l.in(0);
  const std::int64_t size = l.integer("size", 1), before = (size - 1) / 2;
  const double alpha = l.number("alpha", 1e-4), beta = l.number("beta", 0.75), bias = l.number("bias", 1);
  const Dims dims = l.dims(x);
  l.expect(dims.size() >= 2 && size >= 1 && size <= (1 << 20),
           "expected a size of 1 to 2^20 and an operand [N, C, ..], found {} and {}", size, l.type(x).to_string());
  const Operand squares =
      l.reshape(l.unary(OpKind::square, x), {dims[0], 1, dims[1], product({dims.begin() + 2, dims.end()})});
  const Operand mean = l.op(OpKind::average_pool, {squares},
                            {{"kernel", Ints{size, 1}},
                             {"strides", Ints{1, 1}},
                             {"pads", Ints{before, 0, size - 1 - before, 0}},
                             {"count_include_pad", true}});
  const Operand base = l.binary(OpKind::add, l.binary(OpKind::mul, l.reshape(mean, dims), alpha), bias);
  l.set(0, l.binary(OpKind::div, x, l.binary(OpKind::pow, base, beta)));
}

}  // namespace cermet::onnx
