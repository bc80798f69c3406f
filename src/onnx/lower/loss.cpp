// Losses of classifiers.
#include <numeric>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// log_p [N, C, d..] of classes, target [N, d..].
void set_likelihood_loss(Lowering& l, Operand log_p, Operand target, Operand weight, DType to) {
  const std::string reduction = l.text("reduction", "mean");
  l.expect(reduction == "none" || reduction == "mean" || reduction == "sum",
           "attribute reduction: expected none, mean or sum, found {}", reduction);
  l.expect(l.rank(log_p) >= 2 && l.rank(target) == l.rank(log_p) - 1,
           "expected classes [N, C, d..] and targets [N, d..], found {} and {}", l.type(log_p).to_string(),
           l.type(target).to_string());
  const DType compute = l.dtype(log_p);
  Operand ignored;
  if (l.has_attribute("ignore_index")) {
    ignored = l.binary(OpKind::equal, l.cast(target, DType::i64), l.whole(DType::i64, l.integer("ignore_index", 0)));
    target = l.op(OpKind::where, {ignored, l.scalar(l.dtype(target), 0), target});  // which may be no class
  }
  const Operand picked = l.op(OpKind::gather_elements, {log_p, l.unsqueeze(target, {1})}, {{"axis", std::int64_t{1}}});
  Operand loss = l.unary(OpKind::neg, l.squeeze(picked, {1})), weights;
  if (weight) weights = l.op(OpKind::gather, {l.cast(weight, compute), target}, {{"axis", std::int64_t{0}}});
  if (ignored) weights = l.op(OpKind::where, {ignored, l.scalar(compute, 0), weights ? weights : l.scalar(compute, 1)});
  if (ignored) loss = l.op(OpKind::where, {ignored, l.scalar(compute, 0), loss});
  if (weight) loss = l.binary(OpKind::mul, loss, weights);
  if (reduction != "none") {
    Ints axes(static_cast<std::size_t>(l.rank(loss)));
    std::iota(axes.begin(), axes.end(), 0);
    if (reduction == "mean" && weights) {
      loss = l.binary(OpKind::div, l.reduce(OpKind::reduce_sum, loss, axes, false),
                      l.reduce(OpKind::reduce_sum, weights, axes, false));
    } else {
      loss = l.reduce(reduction == "mean" ? OpKind::reduce_mean : OpKind::reduce_sum, loss, axes, false);
    }
  }
  l.set(0, l.cast(loss, to));
}

}  // namespace

void lower_negative_log_likelihood_loss(Lowering& l) {
  set_likelihood_loss(l, l.widened(l.in(0)), l.in(1), l.in_or_none(2), l.dtype(l.in(0)));
}

void lower_softmax_cross_entropy_loss(Lowering& l) {
  const Operand scores = l.widened(l.in(0));
  const int last = l.rank(scores) - 1;
  l.expect(last >= 1, "expected scores [N, C, d..], found {}", l.type(scores).to_string());
  const Operand log_p = l.move_axis(l.op(OpKind::softmax, {l.move_axis(scores, 1, last)}, {{"log", true}}), last, 1);
  set_likelihood_loss(l, log_p, l.in(1), l.in_or_none(2), l.dtype(l.in(0)));
  l.set(1, l.cast(log_p, l.dtype(l.in(0))));
}

}  // namespace cermet::onnx
