#include "op/recurrent.hpp"

namespace cermet::gru_op {
namespace {

enum Gate : int { update, reset, candidate };

void run_cell(RecurrentStep& s) {
  const bool reset_after = s.call.attributes.flag("linear_before_reset");
  const auto n = static_cast<std::size_t>(s.hidden);
  std::vector<Tracked> z(n), r(n), product(n), next(n);
  for (std::size_t j = 0; j < n; ++j) {
    z[j] = s.activate(0, s.sum(update, static_cast<std::int64_t>(j)));
    r[j] = s.activate(0, s.sum(reset, static_cast<std::int64_t>(j)));
    product[j] = r[j] * s.h[j];
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto j = static_cast<std::int64_t>(i);
    const Tracked recurrent = s.recurrent(candidate, j, reset_after ? s.h : product) + s.bias(1, candidate, j);
    const Tracked sum = s.input(candidate, j) + s.bias(0, candidate, j) + (reset_after ? r[i] * recurrent : recurrent);
    next[i] = (Tracked{1, 0} - z[i]) * s.activate(1, sum) + z[i] * s.h[i];
  }
  s.h = std::move(next);
}

std::vector<Case> cases() {
  std::vector<Case> list = recurrent_cases(OpKind::gru);
  for (const char* like : {"f32_bidirectional", "bf16_forward", "no_bias", "lengths", "one_sequence", "whole_vectors",
                           "clip", "not_constant"}) {
    Case c = *std::ranges::find(list, std::string_view(like), &Case::name);
    c.name += "_reset_after";
    c.attributes.set("linear_before_reset", true);
    list.push_back(std::move(c));
  }
  return list;
}

}  // namespace

OpSpec define() {
  OpSpec spec{
      .category = "Recurrent",
      .summary = "Gated recurrent units over sequences, in one or both directions",
      .semantics =
          "Rows of w and r are the gates z, r, h of H rows each. For every time step: z = f(x Wz' + h Rz' + bz), r "
          "likewise, n = g(x Wh' + Wbh + (r * h) Rh' "
          "+ Rbh) "
          "or, with linear_before_reset, g(x Wh' + Wbh + r * (h Rh' + Rbh)), H = (1 - z) * n + z * h, where b is the "
          "sum of both biases and the functions f, "
          "g of a "
          "direction are Sigmoid, Tanh unless `activations` says otherwise. This is ONNX's GRU with layout 0. Shorter "
          "sequences, reverse and rounding are as "
          "in lstm.",
      .inputs = recurrent_inputs(3),
      .outputs = recurrent_outputs(),
      .attributes = recurrent_attributes(),
      .infer = infer_recurrent,
      .reference = [](const ReferenceCall& call) { run_recurrent(call, OpKind::gru, run_cell); },
      .operations = recurrent_operations,
      .rounding_depth = recurrent_depth,
      .cases = cases,
  };
  spec.attributes.push_back({"linear_before_reset", false, "apply the reset gate behind the product with r"});
  return spec;
}

}  // namespace cermet::gru_op
