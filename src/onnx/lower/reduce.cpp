// Reductions, running sums, and the largest elements.
#include <algorithm>

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

void reduce(Lowering& l, OpKind kind, std::int64_t operand_since) { l.set(0, reduced(l, kind, l.in(0), axes_of(l, operand_since))); }

}  // namespace

void lower_reduce_sum(Lowering& l) { reduce(l, OpKind::reduce_sum, 13); }
void lower_reduce_mean(Lowering& l) { reduce(l, OpKind::reduce_mean, 18); }
void lower_reduce_max(Lowering& l) { reduce(l, OpKind::reduce_max, 18); }
void lower_reduce_min(Lowering& l) { reduce(l, OpKind::reduce_min, 18); }
void lower_reduce_prod(Lowering& l) { reduce(l, OpKind::reduce_prod, 18); }

void lower_reduce_l1(Lowering& l) { l.set(0, reduced(l, OpKind::reduce_sum, l.unary(OpKind::abs, l.in(0)), axes_of(l, 18))); }

void lower_reduce_sum_square(Lowering& l) { l.set(0, reduced(l, OpKind::reduce_sum, l.unary(OpKind::square, l.in(0)), axes_of(l, 18))); }

void lower_reduce_l2(Lowering& l) {
  const Operand x = l.widened(l.in(0));
  const Operand y = l.unary(OpKind::sqrt, reduced(l, OpKind::reduce_sum, l.unary(OpKind::square, x), axes_of(l, 18)));
  l.set(0, l.cast(y, l.dtype(l.in(0))));
}

void lower_reduce_log_sum(Lowering& l) { l.set(0, l.unary(OpKind::log, reduced(l, OpKind::reduce_sum, l.in(0), axes_of(l, 18)))); }

/// log(sum(exp(x - m))) + m with the largest finite element m, so that nothing overflows.
void lower_reduce_log_sum_exp(Lowering& l) {
  const Operand x = l.widened(l.in(0));
  const Axes axes = axes_of(l, 18);
  if (axes.none || l.rank(x) == 0) return l.set(0, l.in(0));
  Operand largest = l.reduce(OpKind::reduce_max, x, axes.axes, true);
  const Operand finite = l.binary(OpKind::less, l.unary(OpKind::abs, largest), 3e38);
  largest = l.op(OpKind::where, {finite, largest, l.scalar(l.dtype(x), 0)});
  const Operand sum = l.reduce(OpKind::reduce_sum, l.unary(OpKind::exp, l.binary(OpKind::sub, x, largest)), axes.axes, true);
  Operand y = l.cast(l.binary(OpKind::add, l.unary(OpKind::log, sum), largest), l.dtype(l.in(0)));
  if (l.integer("keepdims", 1) == 0) y = l.squeeze(y, axes.axes);
  l.set(0, y);
}

namespace {

void arg(Lowering& l, bool least) {
  Operand x = l.in(0);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", 0), std::max(rank, 1));
  if (rank == 0) return l.set(0, l.scalar(DType::i64, 0));
  x = l.move_axis(x, axis, rank - 1);
  const Attributes attributes{{"out_dtype", "i64"}, {"smallest", least}, {"select_last_index", l.integer("select_last_index", 0) != 0}};
  const Operand y = l.op(OpKind::argmax, {x}, attributes);
  l.set(0, l.integer("keepdims", 1) != 0 ? l.unsqueeze(y, {axis}) : y);
}

}  // namespace

void lower_arg_max(Lowering& l) { arg(l, false); }
void lower_arg_min(Lowering& l) { arg(l, true); }

void lower_cum_sum(Lowering& l) {
  const Operand x = l.in(0);
  const Ints axis = l.ints_in(l.in(1));
  l.expect(axis.size() == 1, "axis: expected one, found {}", axis.size());
  l.set(0,
        l.op(OpKind::cumsum, {x},
             {{"axis", std::int64_t{l.axis(axis[0], l.rank(x))}}, {"exclusive", l.integer("exclusive", 0) != 0}, {"reverse", l.integer("reverse", 0) != 0}}));
}

/// Products of 1, 2, 4, .. elements in turn: each step multiplies with what is so many positions before.
void lower_cum_prod(Lowering& l) {
  Operand y = l.in(0);
  const Ints axis = l.ints_in(l.in(1));
  l.expect(axis.size() == 1, "axis: expected one, found {}", axis.size());
  const int a = l.axis(axis[0], l.rank(y));
  const bool reverse = l.integer("reverse", 0) != 0;
  const std::int64_t n = l.size(y, a);
  const auto shifted = [&](Operand x, std::int64_t by) {
    const Operand kept = reverse ? l.slice(x, a, by, n) : l.slice(x, a, 0, n - by);
    Ints pads(2 * static_cast<std::size_t>(l.rank(x)));
    pads[static_cast<std::size_t>(reverse ? a + l.rank(x) : a)] = by;
    return l.op(OpKind::pad, {kept}, {{"pads", pads}, {"mode", "constant"}, {"value", 1.0}});
  };
  if (l.integer("exclusive", 0) != 0 && n > 0) y = shifted(y, 1);
  for (std::int64_t by = 1; by < n; by *= 2) y = l.binary(OpKind::mul, y, shifted(y, by));
  l.set(0, y);
}

void lower_top_k(Lowering& l) {
  const Operand x = l.in(0);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", -1), rank);
  const Ints k = l.version() < 10 ? Ints{l.integer("k", 1)} : l.ints_in(l.in(1));
  l.expect(k.size() == 1 && k[0] >= 0 && k[0] <= l.size(x, axis), "k: expected 0 to {}, found {}", l.size(x, axis), k.empty() ? -1 : k[0]);
  const std::vector<Operand> best =
      l.ops(OpKind::topk, {l.move_axis(x, axis, rank - 1)}, {{"k", k[0]}, {"largest", l.integer("largest", 1) != 0}, {"index_dtype", "i64"}});
  l.set(0, l.move_axis(best[0], rank - 1, axis));
  l.set(1, l.move_axis(best[1], rank - 1, axis));
}

}  // namespace cermet::onnx
