#include "op/recurrent.hpp"

namespace cermet::rnn_op {
namespace {

void run_cell(RecurrentStep& s) {
  std::vector<Tracked> next(s.h.size());
  for (std::size_t j = 0; j < next.size(); ++j) next[j] = s.activate(0, s.sum(0, static_cast<std::int64_t>(j)));
  s.h = std::move(next);
}

}  // namespace

OpSpec define() {
  return {
      .category = "Recurrent",
      .summary = "A recurrent layer without gates over sequences, in one or both directions",
      .semantics =
          "For every time step: H = f(x W' + h R' + b), where b is the sum of both biases and the function f of a "
          "direction is Tanh unless `activations` says "
          "otherwise. This is ONNX's RNN with layout 0. Shorter sequences, reverse and rounding are as in lstm.",
      .inputs = recurrent_inputs(1),
      .outputs = recurrent_outputs(),
      .attributes = recurrent_attributes(),
      .infer = infer_recurrent,
      .reference = [](const ReferenceCall& call) { run_recurrent(call, OpKind::rnn, run_cell); },
      .operations = recurrent_operations,
      .rounding_depth = recurrent_depth,
      .cases = [] { return recurrent_cases(OpKind::rnn); },
  };
}

}  // namespace cermet::rnn_op
