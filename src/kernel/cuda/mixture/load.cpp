// Host half of expert_load.
#include "kernel/cuda/device/mixture/load.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::mixture_load_file {

extern const Kernel moe_expert_load;
const Kernel moe_expert_load{
    .name = "moe.expert_load",
    .op = OpKind::expert_load,
    .summary = "counters in shared memory: there are as many ids as a router chooses, not as many as elements",
    .bind = [](const Problem& p) -> Launcher {
      return [experts = p.attributes.integer("experts")](const LaunchArgs& args) {
        const TensorView& ids = args.inputs[0];
        const expert_load::Params params{ids.data, args.outputs[0].as<std::int32_t>(), experts, ids.dtype == DType::i64,
                                         axes_of(ids)};
        args.queue->run(0, div_up(experts, expert_load::block_experts), params);
      };
    },
    .programs = [](const Problem&) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/mixture/load.cuh",
               .task = "cermet::expert_load::Task",
               .threads = expert_load::threads,
               .shared_bytes = expert_load::block_experts * 4}};
    }};

}  // namespace cermet::cuda::mixture_load_file
