#include "onnx/lower/scores.hpp"

namespace cermet::onnx {

Operand transformed_scores(Lowering& l, Operand scores) {
  return transformed_scores(l, scores, l.text("post_transform", "NONE"));
}

Operand transformed_scores(Lowering& l, Operand scores, std::string_view transformation) {
  if (transformation == "NONE") return scores;
  if (transformation == "LOGISTIC") return l.unary(OpKind::sigmoid, scores);
  if (transformation == "SOFTMAX") return l.unary(OpKind::softmax, scores);
  if (transformation == "SOFTMAX_ZERO") {  // scores of 0 stay 0, and count for nothing
    const Operand any = l.binary(OpKind::greater, l.unary(OpKind::abs, scores), 1e-7);
    const Operand largest = l.reduce(OpKind::reduce_max, scores, {1}, true);
    const Operand zero = l.scalar(l.dtype(scores), 0);
    const Operand weight =
        l.op(OpKind::where, {any, l.unary(OpKind::exp, l.binary(OpKind::sub, scores, largest)), zero});
    const Operand sum = l.reduce(OpKind::reduce_sum, weight, {1}, true);
    const Operand divisor = l.op(OpKind::where, {l.binary(OpKind::equal, sum, 0.0), l.scalar(l.dtype(scores), 1), sum});
    return l.binary(OpKind::div, weight, divisor);
  }
  l.unsupported("attribute post_transform: {} is not supported", transformation);
}

Operand best_label(Lowering& l, Operand scores, const Ints& labels) {
  return l.op(OpKind::gather, {l.ints(labels), l.op(OpKind::argmax, {scores})}, {{"axis", std::int64_t{0}}});
}

Operand label_where(Lowering& l, Operand condition, const Ints& labels) {
  l.expect(labels.size() == 2, "class labels: expected 2, found {}", labels.size());
  const auto label = [&](std::size_t i) { return l.reshape(l.ints({labels[i]}), {}); };
  return l.reshape(l.op(OpKind::where, {condition, label(1), label(0)}), {l.dim(condition, 0)});
}

void refuse_strings(const Lowering& l, std::string_view attribute) {
  l.unsupported("attribute {}: strings are not supported; labels as integers are", attribute);
}

}  // namespace cermet::onnx
