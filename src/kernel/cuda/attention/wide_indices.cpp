// Host half of incre_flash_attention with tables, lengths or starts in int64: a task narrows them for the kernel that
// takes int32.
#include "kernel/wide_indices.hpp"

#include "base/checked.hpp"
#include "base/device_limits.hpp"
#include "kernel/cuda/device/movement/narrow_indices.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/decline.hpp"
#include "kernel/part_choice.hpp"

namespace cermet::cuda::attention_wide_indices_file {
namespace {

/// The kernel with the least modelled time, in its own configuration.
PartChoice choice_of(const WideIndices& wide) {
  const Region& region = wide.narrowed();
  const DeviceLimits limits = limits_of(region.target());
  PartChoice best;
  double least = 0;
  for (const Kernel* kernel : kernels_of(OpKind::incre_flash_attention)) {
    if (decline_of(*kernel, region)) continue;
    Config config = kernel->configs(region).front();
    const double seconds = kernel->cost ? kernel->cost(region, config, limits) : 0;
    if (best.kernel && (seconds == 0 || seconds >= least)) continue;
    best = {kernel, std::move(config)};
    least = seconds;
  }
  return best;
}

Launcher bind(const Problem& p) {
  const WideIndices wide(p);
  const PartChoice choice = choice_of(wide);
  const std::size_t programs = choice.kernel->programs(wide.narrowed(), choice.config).size();
  return [wide, programs, launch = choice.kernel->bind(wide.narrowed(), choice.config)](const LaunchArgs& args) {
    const WideIndices::Operands operands =
        wide.operands(args, args.workspace, [&](const TensorView& from, const TensorView& to) {
          const narrow_indices::Params params{from.as<const std::int64_t>(), to.as<std::int32_t>(), axes_of(from)};
          args.queue->run(0, div_up(params.axes.count, narrow_indices::threads), params);
          if (params.axes.count > 0) args.queue->declare({byte_range(from)}, {byte_range(to)});
        });
    const TaskQueue queue = args.queue->part(1, programs);
    LaunchArgs narrowed = args;
    narrowed.inputs = std::span(operands).first(args.inputs.size());
    narrowed.workspace = args.workspace + wide.bytes();
    narrowed.queue = &queue;
    launch(narrowed);
  };
}

}  // namespace

extern const Kernel attention_wide_indices;
const Kernel attention_wide_indices{
    .name = "attention.wide_indices",
    .op = OpKind::incre_flash_attention,
    .summary = "tables, lengths and starts in int64, narrowed for the kernel that takes int32",
    .declines = [](const Problem& p) -> Decline {
      if (!WideIndices::any(p)) return "indices are int32";
      if (!choice_of(WideIndices(p)).kernel) return "no kernel takes it with indices in int32";
      return std::nullopt;
    },
    .bind = bind,
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const WideIndices wide(p);
      const PartChoice choice = choice_of(wide);
      return wide.bytes() + choice.kernel->workspace(wide.narrowed(), choice.config, threads);
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const WideIndices wide(p);
      const PartChoice choice = choice_of(wide);
      std::vector<Program> list{{.header = "kernel/cuda/device/movement/narrow_indices.cuh",
                                 .task = "cermet::narrow_indices::Task",
                                 .threads = narrow_indices::threads}};
      for (Program& program : choice.kernel->programs(wide.narrowed(), choice.config))
        list.push_back(std::move(program));
      return list;
    },
    .cost =
        [](const Problem& p, const DeviceLimits& limits) {
          const WideIndices wide(p);
          const PartChoice choice = choice_of(wide);
          return limits.launch_seconds +
                 (choice.kernel->cost ? choice.kernel->cost(wide.narrowed(), choice.config, limits) : 0);
        }};

}  // namespace cermet::cuda::attention_wide_indices_file
