// Host half of the merge_attention_states task.
#include "kernel/cuda/device/attention/merge_states.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_merge_states_file {
namespace {

using enum op::merge_attention_states::Operand;
constexpr int threads = 128;

std::vector<Program> programs(const Problem& p) {
  const merge_states::Config config{.size = static_cast<int>(p.size(o1, 2)),
                                    .a = p.input(o1).dtype,
                                    .b = p.input(o2).dtype,
                                    .out = p.outputs[0].dtype,
                                    .threads = threads};
  return {{.header = "kernel/cuda/device/attention/merge_states.cuh",
           .task = fmt::format("cermet::merge_states::Task<cermet::merge_states::Config{}>", config_text(config)),
           .threads = threads}};
}

merge_states::State state_of(const TensorView& o, const TensorView& lse) {
  return {o.data, lse.as<const float>(), o.strides[0], o.strides[1], lse.strides[0]};
}

Launcher bind(const Problem&) {
  return [](const LaunchArgs& args) {
    const TensorView &o = args.outputs[0], &lse = args.outputs[1];
    const merge_states::Params params{state_of(args.inputs[o1], args.inputs[lse1]),
                                      state_of(args.inputs[o2], args.inputs[lse2]),
                                      o.data,
                                      lse.as<float>(),
                                      o.strides[0],
                                      o.strides[1],
                                      lse.strides[0],
                                      o.shape[0] * o.shape[1],
                                      narrow(o.shape[1], "attention", "heads")};
    args.queue->run(0, div_up(params.rows, threads / 32), params);
  };
}

}  // namespace

extern const Kernel attention_merge_states;
const Kernel attention_merge_states{.name = "attention.merge_states",
                                    .op = OpKind::merge_attention_states,
                                    .summary = "a warp joins the two states of a token and head",
                                    .bind = bind,
                                    .programs = programs};

}  // namespace cermet::cuda::attention_merge_states_file
