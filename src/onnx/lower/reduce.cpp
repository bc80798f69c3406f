// Reductions.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

struct Axes {
  Ints axes;
  bool none = false;  ///< the operand is handed on
};

/// Axes are an attribute in older opsets, an operand in newer ones.
Axes axes_of(Lowering& l, std::int64_t operand_since) {
  Ints axes = l.integers("axes");
  if (l.version() >= operand_since && l.has(1)) axes = l.ints_in(l.in(1));
  if (axes.empty() && l.integer("noop_with_empty_axes", 0) != 0) return {{}, true};
  for (std::int64_t& a : axes) a = l.axis(a, l.rank(l.in(0)));
  if (axes.empty())
    for (int a = 0; a < l.rank(l.in(0)); ++a) axes.push_back(a);
  return {axes, false};
}

Operand reduced(Lowering& l, OpKind kind, Operand x, const Axes& axes) {
  if (axes.none || l.rank(x) == 0) return x;
  const DType own = l.dtype(x);
  const bool truth = own == DType::boolean;
  const Operand y = l.reduce(kind, truth ? l.cast(x, DType::u8) : x, axes.axes, l.integer("keepdims", 1) != 0);
  return truth ? l.cast(y, DType::boolean) : y;
}

/// For functions of real numbers: integers in float64, whose result loses its fraction at the end.
Operand real(Lowering& l, Operand x) { return is_floating(l.dtype(x)) ? l.widened(x) : l.cast(x, DType::f64); }

void reduce(Lowering& l, OpKind kind, std::int64_t operand_since) {
  l.set(0, reduced(l, kind, l.in(0), axes_of(l, operand_since)));
}

}  // namespace

void lower_reduce_sum(Lowering& l) { reduce(l, OpKind::reduce_sum, 13); }
/// Of integers the exact sum over their number, without the fraction.
void lower_reduce_mean(Lowering& l) {
  const Operand x = l.in(0);
  const Axes axes = axes_of(l, 18);
  if (!is_integer(l.dtype(x)) || axes.none || l.rank(x) == 0) return l.set(0, reduced(l, OpKind::reduce_mean, x, axes));
  std::int64_t count = 1;
  for (const std::int64_t a : axes.axes) count *= l.size(x, static_cast<int>(a));
  const DType wide = l.dtype(x) == DType::u64 ? DType::u64 : DType::i64;
  const Operand sum = reduced(l, OpKind::reduce_sum, l.cast(x, wide), axes);
  l.set(0, l.cast(count > 1 ? l.binary(OpKind::div, sum, l.whole(wide, count)) : sum, l.dtype(x)));
}
void lower_reduce_max(Lowering& l) { reduce(l, OpKind::reduce_max, 18); }
void lower_reduce_min(Lowering& l) { reduce(l, OpKind::reduce_min, 18); }
void lower_reduce_prod(Lowering& l) { reduce(l, OpKind::reduce_prod, 18); }

void lower_reduce_l1(Lowering& l) {
  l.set(0, reduced(l, OpKind::reduce_sum, l.unary(OpKind::abs, l.in(0)), axes_of(l, 18)));
}

void lower_reduce_sum_square(Lowering& l) {
  l.set(0, reduced(l, OpKind::reduce_sum, l.unary(OpKind::square, l.in(0)), axes_of(l, 18)));
}

void lower_reduce_l2(Lowering& l) {
  const Operand x = real(l, l.in(0));
  const Operand y = l.unary(OpKind::sqrt, reduced(l, OpKind::reduce_sum, l.unary(OpKind::square, x), axes_of(l, 18)));
  l.set(0, l.cast(y, l.dtype(l.in(0))));
}

void lower_reduce_log_sum(Lowering& l) {
  const Operand x = l.in(0);
  const Operand y =
      l.unary(OpKind::log, reduced(l, OpKind::reduce_sum, is_floating(l.dtype(x)) ? x : real(l, x), axes_of(l, 18)));
  l.set(0, l.cast(y, l.dtype(x)));
}

/// log(sum(exp(x - m))) + m with the largest finite element m, so that nothing overflows.
void lower_reduce_log_sum_exp(Lowering& l) {
  const Operand x = real(l, l.in(0));
  const Axes axes = axes_of(l, 18);
  if (axes.none || l.rank(x) == 0) return l.set(0, l.in(0));
  Operand largest = l.reduce(OpKind::reduce_max, x, axes.axes, true);
  const Operand finite = l.binary(OpKind::less, l.unary(OpKind::abs, largest), 3e38);
  largest = l.op(OpKind::where, {finite, largest, l.scalar(l.dtype(x), 0)});
  const Operand sum =
      l.reduce(OpKind::reduce_sum, l.unary(OpKind::exp, l.binary(OpKind::sub, x, largest)), axes.axes, true);
  Operand y = l.cast(l.binary(OpKind::add, l.unary(OpKind::log, sum), largest), l.dtype(l.in(0)));
  if (l.integer("keepdims", 1) == 0) y = l.squeeze(y, axes.axes);
  l.set(0, y);
}

}  // namespace cermet::onnx
