// Host half of lstm, gru and rnn.
#include "op/recurrent.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/recurrent/recurrent.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::recurrent_recurrent_file {
namespace {

using namespace recurrent;

/// What is read of the attributes at binding.
struct Binding {
  OpKind op;
  int gates;
  recurrent::Params params{};

  explicit Binding(const Problem& p) : op(p.op->kind), gates(recurrent_kind(op).gates) {
    const auto functions = static_cast<int>(recurrent_kind(op).activations.size());
    const std::vector<RecurrentActivation> activations = recurrent_activations(p.attributes, recurrent_kind(op));
    for (std::size_t i = 0; i < activations.size(); ++i) {
      const RecurrentActivation& a = activations[i];
      const auto of_direction = static_cast<std::size_t>(functions);
      params.functions[3 * (i / of_direction) + i % of_direction] = {
          static_cast<std::uint32_t>(a.function), static_cast<float>(a.alpha), static_cast<float>(a.beta)};
    }
    params.clip = static_cast<float>(p.attributes.number("clip"));
    params.reverse = (runs_backwards(p.attributes, 0) ? 1u : 0u) | 2u;
    if (op == OpKind::lstm) params.coupled = p.attributes.flag("input_forget");
    if (op == OpKind::gru) params.reset_after = p.attributes.flag("linear_before_reset");
  }
};

recurrent::Strided operand_of(const TensorView& view) {
  recurrent::Strided operand{};
  if (!view.present) return operand;
  operand.data = view.data;
  for (int a = 0; a + 1 < view.shape.rank(); ++a) operand.stride[a] = view.strides[a];
  return operand;
}

void launch(const LaunchArgs& args, const Binding& binding) {
  const auto input = [&](std::size_t i) { return operand_of(args.has(i) ? args.inputs[i] : TensorView()); };
  const RecurrentSizes n = recurrent_sizes(args.inputs[x], args.inputs[r]);
  if (n.batch == 0 || n.hidden == 0) return;
  recurrent::Params params = binding.params;
  params.x = input(x), params.w = input(w), params.r = input(r), params.bias = input(bias),
  params.initial_h = input(initial_h);
  params.y = operand_of(args.outputs[y]), params.y_h = operand_of(args.outputs[y_h]);
  if (binding.op == OpKind::lstm)
    params.initial_c = input(initial_c), params.peepholes = input(peepholes),
    params.y_c = operand_of(args.outputs[y_c]);
  params.lengths = args.has(sequence_lens) ? args.inputs[sequence_lens].as<const std::int32_t>() : nullptr;
  params.scratch = reinterpret_cast<float*>(args.workspace);
  params.steps = n.steps, params.batch = n.batch, params.input = n.input, params.hidden = n.hidden;
  args.queue->run(0, n.directions * n.batch, params);
}

Launcher bind_cell(const Problem& p) {
  return [binding = Binding(p)](const LaunchArgs& args) { launch(args, binding); };
}

std::int64_t workspace(const Problem& p, int) {
  const std::int64_t items = p.size(r, 0) * p.size(x, 1);
  return items * scratch_floats(recurrent_kind(p.op->kind).gates, p.size(r, 2)) *
         static_cast<std::int64_t>(sizeof(float));
}

std::vector<Program> programs(const Problem& p) {
  const OpKind op = p.op->kind;
  const recurrent::Config config{.cell = op == OpKind::lstm  ? Cell::lstm
                                         : op == OpKind::gru ? Cell::gru
                                                             : Cell::rnn,
                                 .type = p.input(x).dtype};
  return {{.header = "kernel/cuda/device/recurrent/recurrent.cuh",
           .task = fmt::format("cermet::recurrent::Task<cermet::recurrent::Config{}>", config_text(config)),
           .threads = recurrent::threads}};
}

constexpr const char* const summary = "a block for each direction of each sequence, step by step";

}  // namespace

extern const Kernel recurrent_lstm, recurrent_gru, recurrent_rnn;
const Kernel recurrent_lstm{.name = "recurrent.lstm",
                            .op = OpKind::lstm,
                            .summary = summary,
                            .bind = bind_cell,
                            .workspace = workspace,
                            .programs = programs};
const Kernel recurrent_gru{.name = "recurrent.gru",
                           .op = OpKind::gru,
                           .summary = summary,
                           .bind = bind_cell,
                           .workspace = workspace,
                           .programs = programs};
const Kernel recurrent_rnn{.name = "recurrent.rnn",
                           .op = OpKind::rnn,
                           .summary = summary,
                           .bind = bind_cell,
                           .workspace = workspace,
                           .programs = programs};

}  // namespace cermet::cuda::recurrent_recurrent_file
