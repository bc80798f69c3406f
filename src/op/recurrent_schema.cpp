// The parts of schema and cases that lstm, gru and rnn share.
#include "op/recurrent.hpp"

namespace cermet {

std::vector<OperandSpec> recurrent_inputs(int gates) {
  const std::string_view rows = gates == 4 ? "[D, 4H, I]" : gates == 3 ? "[D, 3H, I]" : "[D, H, I]";
  const std::string_view recurrent_rows = gates == 4 ? "[D, 4H, H]" : gates == 3 ? "[D, 3H, H]" : "[D, H, H]";
  const std::string_view biases = gates == 4 ? "[D, 8H]" : gates == 3 ? "[D, 6H]" : "[D, 2H]";
  return {{"x", dtypes::real, "[T, B, I]", "inputs of T time steps of B sequences", Mapping::barrier},
          {"w", dtypes::real, rows, "weights of the inputs; D directions", Mapping::barrier},
          {"r", dtypes::real, recurrent_rows, "weights of the state", Mapping::barrier},
          {"bias", dtypes::real, biases, "of w, then of r", Mapping::barrier, true},
          {"sequence_lens", DTypeSet{DType::i32}, "[B]", "time steps of each sequence, at most T; T where not given",
           Mapping::barrier, true},
          {"initial_h", dtypes::real, "[D, B, H]", "state before the first step; 0 where not given", Mapping::barrier,
           true}};
}

std::vector<OperandSpec> recurrent_outputs() {
  return {{"y", dtypes::real, "[T, D, B, H]", "states behind every step"},
          {"y_h", dtypes::real, "[D, B, H]", "states behind the last step"}};
}

std::vector<AttributeSpec> recurrent_attributes() {
  return {{"direction",
           std::string("forward"),
           "order of the time steps; bidirectional is forward, then reverse",
           {"forward", "reverse", "bidirectional"}},
          {"activations", Strings{}, "functions of each direction, as ONNX names them; the default ones where empty"},
          {"activation_alpha", Floats{},
           "first parameters, in the order of the functions that have one; ONNX's defaults behind the last"},
          {"activation_beta", Floats{}, "second parameters, likewise"},
          {"clip", 0.0, "limit of the sums that f and g take, on both sides; 0 is none"}};
}

std::vector<Case> recurrent_cases(OpKind op) {
  const RecurrentKind& kind = recurrent_kind(op);
  std::vector<Case> list;
  struct Sizes {
    std::int64_t steps = 3, batch = 2, input = 5, hidden = 7;
    std::string direction = "forward";
    DType dtype = DType::f32;
    bool bias = true, lens = false, state = false, peepholes = false, constant = true;
    std::int64_t padding = 0;
  };
  const auto add = [&](std::string name, const Sizes& s, Attributes attributes = {}) {
    const std::int64_t d = s.direction == "bidirectional" ? 2 : 1, rows = kind.gates * s.hidden;
    const auto operand = [&](Dims dims, double deviation, bool constant = false) {
      return CaseOperand{{s.dtype, std::move(dims)}, normal(deviation), constant ? 0 : s.padding, constant};
    };
    const auto optional = [&](bool given, Dims dims, double deviation) {
      return given ? std::optional(operand(std::move(dims), deviation)) : std::nullopt;
    };
    Case c{std::move(name),
           {operand({s.steps, s.batch, s.input}, 1), operand({d, rows, s.input}, 0.3, s.constant),
            operand({d, rows, s.hidden}, 0.3, s.constant), optional(s.bias, {d, 2 * rows}, 0.5), std::nullopt,
            optional(s.state, {d, s.batch, s.hidden}, 1)},
           std::move(attributes)};
    if (s.lens)
      c.inputs[recurrent::sequence_lens] =
          CaseOperand{{DType::i32, {s.batch}}, values({2, static_cast<double>(s.steps), 0, 1})};
    if (op == OpKind::lstm) {
      c.inputs.push_back(optional(s.state, {d, s.batch, s.hidden}, 1));
      c.inputs.push_back(optional(s.peepholes, {d, 3 * s.hidden}, 0.5));
    }
    c.attributes.set("direction", s.direction);
    list.push_back(std::move(c));
  };
  for (const DType t : {DType::f32, DType::bf16, DType::f16})
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      add(fmt::format("{}_{}", name_of(t), direction), {.direction = direction, .dtype = t, .state = t == DType::f32});
  add("no_bias", {.bias = false});
  add("not_constant", {.state = true, .constant = false});
  add("not_constant_bf16", {.direction = "bidirectional", .dtype = DType::bf16, .constant = false});
  add("lengths", {.steps = 4, .batch = 5, .direction = "bidirectional", .lens = true, .state = true});
  add("lengths_reverse", {.steps = 4, .batch = 4, .direction = "reverse", .lens = true});
  add("one_sequence", {.steps = 5, .batch = 1, .input = 40, .hidden = 64, .state = true});
  add("whole_vectors", {.steps = 2, .batch = 3, .input = 33, .hidden = 32});
  add("many_sequences", {.steps = 2, .batch = 17, .input = 3, .hidden = 40, .direction = "bidirectional"});
  add("one_of_everything", {.steps = 1, .batch = 1, .input = 1, .hidden = 1});
  add("strided", {.state = true, .peepholes = true, .padding = 3});
  add("clip", {.state = true, .peepholes = true}, {{"clip", 0.4}});
  add("no_steps", {.steps = 0, .state = true});
  add("no_sequences", {.batch = 0});
  const auto with = [&](std::string_view name, const Strings& names, const Floats& alpha = {},
                        const Floats& beta = {}) {
    Strings all;
    while (all.size() < kind.activations.size()) all.push_back(names[all.size() % names.size()]);
    add(fmt::format("activations_{}", name), {.steps = 2},
        {{"activations", all}, {"activation_alpha", alpha}, {"activation_beta", beta}});
  };
  with("relu", {"Relu", "Softsign"});
  with("affine", {"Affine", "Tanh"}, {0.5, 0.7}, {0.1, 0.2});
  with("leaky", {"Elu", "LeakyRelu"}, {0.5});
  with("hard", {"HardSigmoid", "ScaledTanh"}, {0.3, 0.8, 0.7}, {0.4, 1.2, 0.6});
  with("threshold", {"ThresholdedRelu", "Softplus"}, {0.1});
  with("soft", {"Softplus", "Elu"});
  with("defaults", {"HardSigmoid", "LeakyRelu"});
  return list;
}

}  // namespace cermet
