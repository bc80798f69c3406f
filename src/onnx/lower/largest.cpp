// The largest elements and where they are.
#include <algorithm>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

void arg(Lowering& l, bool least) {
  Operand x = l.in(0);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", 0), std::max(rank, 1));
  if (rank == 0) return l.set(0, l.scalar(DType::i64, 0));
  x = l.move_axis(x, axis, rank - 1);
  const Attributes attributes{
      {"out_dtype", "i64"}, {"smallest", least}, {"select_last_index", l.integer("select_last_index", 0) != 0}};
  const Operand y = l.op(OpKind::argmax, {x}, attributes);
  l.set(0, l.integer("keepdims", 1) != 0 ? l.unsqueeze(y, {axis}) : y);
}

}  // namespace

void lower_arg_max(Lowering& l) { arg(l, false); }
void lower_arg_min(Lowering& l) { arg(l, true); }

void lower_top_k(Lowering& l) {
  const Operand x = l.in(0);
  const int rank = l.rank(x), axis = l.axis(l.integer("axis", -1), rank);
  const Ints k = l.version() < 10 ? Ints{l.integer("k", 1)} : l.ints_in(l.in(1));
  l.expect(k.size() == 1 && k[0] >= 0 && k[0] <= l.size(x, axis), "k: expected 0 to {}, found {}", l.size(x, axis),
           k.empty() ? -1 : k[0]);
  const std::vector<Operand> best =
      l.ops(OpKind::topk, {l.move_axis(x, axis, rank - 1)},
            {{"k", k[0]}, {"largest", l.integer("largest", 1) != 0}, {"index_dtype", "i64"}});
  l.set(0, l.move_axis(best[0], rank - 1, axis));
  l.set(1, l.move_axis(best[1], rank - 1, axis));
}

}  // namespace cermet::onnx
