#include "op/recurrent.hpp"

namespace cermet::lstm_op {
namespace {

enum Gate : int { in, out, forget, cell };

Tracked peephole(const RecurrentStep& s, int which, std::int64_t j, Tracked c) {
  if (!s.call.has(recurrent::peepholes)) return {};
  return Tracked{load(s.call.inputs[recurrent::peepholes], (3 * s.direction + which) * s.hidden + j), 0} * c;
}

void run_cell(RecurrentStep& s) {
  const bool coupled = s.call.attributes.flag("input_forget");
  std::vector<Tracked> next(s.h.size());  // gates read the old state
  for (std::int64_t j = 0; j < s.hidden; ++j) {
    Tracked& c = s.c[static_cast<std::size_t>(j)];
    const Tracked i = s.activate(0, s.sum(in, j) + peephole(s, 0, j, c));
    const Tracked f = coupled ? Tracked{1, 0} - i : s.activate(0, s.sum(forget, j) + peephole(s, 2, j, c));
    c = f * c + i * s.activate(1, s.sum(cell, j));
    const Tracked o = s.activate(0, s.sum(out, j) + peephole(s, 1, j, c));
    next[static_cast<std::size_t>(j)] = o * activated(s.activations[2], c);
  }
  s.h = std::move(next);
}

std::vector<Case> cases() {
  std::vector<Case> list = recurrent_cases(OpKind::lstm);
  const auto with = [&](std::string name, std::string_view like, std::pair<std::string, AttributeValue> attribute,
                        bool peepholes) {
    Case c = *std::ranges::find(list, like, &Case::name);
    c.name = std::move(name);
    c.attributes.set(attribute.first, std::move(attribute.second));
    const std::int64_t d = c.inputs[recurrent::w]->type.dims[0].constant(),
                       hidden = c.inputs[recurrent::r]->type.dims[2].constant();
    if (peepholes)
      c.inputs[recurrent::peepholes] = CaseOperand{{c.inputs[0]->type.dtype, {d, 3 * hidden}}, normal(0.5)};
    list.push_back(std::move(c));
  };
  with("peepholes", "f32_bidirectional", {"input_forget", false}, true);
  with("peepholes_bf16", "bf16_forward", {"input_forget", false}, true);
  with("peepholes_one_sequence", "one_sequence", {"input_forget", false}, true);
  with("coupled", "f32_forward", {"input_forget", true}, false);
  with("coupled_peepholes", "one_sequence", {"input_forget", true}, true);
  return list;
}

}  // namespace

OpSpec define() {
  OpSpec spec{
      .category = "Recurrent",
      .summary = "Long short-term memory over sequences, in one or both directions",
      .semantics =
          "Rows of w and r are the gates i, o, f, c of H rows each. For every time step: i = f(x Wi' + h Ri' + Pi * c "
          "+ bi), f likewise with Pf (1 - i with "
          "input_forget), C = f * c + i * g(x Wc' + h Rc' + bc), o = f(x Wo' + h Ro' + Po * C + bo), H = o * h(C), "
          "where b is the sum of both biases, "
          "peepholes P "
          "have the order i, o, f, and the functions f, g, h of a direction are Sigmoid, Tanh, Tanh unless "
          "`activations` says otherwise. `clip` limits what f "
          "and g take, not the cell that h takes, as in ONNX Runtime. This is ONNX's LSTM "
          "with "
          "layout 0. A sequence shorter than T gives zeros behind its end, its y_h and y_c are those of its last step "
          "(of its initial state where it has "
          "none), and "
          "reverse begins at its end. States are kept in float32 between steps and rounded once where they are stored.",
      .inputs = recurrent_inputs(4),
      .outputs = recurrent_outputs(),
      .attributes = recurrent_attributes(),
      .infer = infer_recurrent,
      .reference = [](const ReferenceCall& call) { run_recurrent(call, OpKind::lstm, run_cell); },
      .operations = recurrent_operations,
      .rounding_depth = recurrent_depth,
      .cases = cases,
  };
  spec.inputs.push_back({"initial_c", dtypes::real, "[D, B, H]", "cells before the first step; 0 where not given",
                         Mapping::barrier, true});
  spec.inputs.push_back(
      {"peepholes", dtypes::real, "[D, 3H]", "weights of the cell in the gates i, o, f", Mapping::barrier, true});
  spec.outputs.push_back({"y_c", dtypes::real, "[D, B, H]", "cells behind the last step"});
  spec.attributes.push_back({"input_forget", false, "couple the gates: forget is 1 - i"});
  return spec;
}

}  // namespace cermet::lstm_op
