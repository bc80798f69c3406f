// Host half of iota and size_of.
#include "kernel/cuda/device/movement/sizes.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::movement_sizes_file {
namespace {

void fill_positions(const LaunchArgs& args, int axis, double step) {
  const TensorView& y = args.outputs[0];
  if (y.elements() == 0) return;
  AxesBuilder<2> axes;
  for (int a = 0; a < y.shape.rank(); ++a) axes.append(y.shape[a], {y.strides[a], a == axis ? 1 : 0});
  const sizes::IotaParams params{.start = args.inputs[0].data, .y = y.data, .step = step, .axes = axes.make()};
  args.queue->run(0, div_up(params.axes.count, sizes::threads), params);
}

void write_sizes(const LaunchArgs& args, const std::vector<int>& axes) {
  const TensorView& y = args.outputs[0];
  if (axes.empty()) return;
  sizes::SizesParams params{
      .y = y.as<std::int64_t>(), .stride = y.strides[0], .count = static_cast<std::int32_t>(axes.size()), .size = {}};
  for (std::size_t i = 0; i < axes.size(); ++i) params.size[i] = args.inputs[0].shape[axes[i]];
  args.queue->run(0, 1, params);
}

Program program_of(std::string task) {
  return {.header = "kernel/cuda/device/movement/sizes.cuh", .task = std::move(task), .threads = sizes::threads};
}

}  // namespace

extern const Kernel movement_iota;
const Kernel movement_iota{
    .name = "movement.iota",
    .op = OpKind::iota,
    .summary = "an element for each thread",
    .bind = [](const Problem& p) -> Launcher {
      const int axis = wrap_axis(p.attributes.integer("axis"), p.outputs[0].rank());
      return [axis, step = p.attributes.number("step")](const LaunchArgs& args) { fill_positions(args, axis, step); };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const sizes::Config config{.type = p.outputs[0].dtype};
      return {program_of(fmt::format("cermet::sizes::Iota<cermet::sizes::Config{}>", config_text(config)))};
    }};

extern const Kernel movement_size_of;
const Kernel movement_size_of{
    .name = "movement.size_of",
    .op = OpKind::size_of,
    .summary = "one thread block writes what the launch brings",
    .bind = [](const Problem& p) -> Launcher {
      return [axes = axes_in_order(p, "axes", p.input(0).rank())](const LaunchArgs& args) { write_sizes(args, axes); };
    },
    .programs = [](const Problem&) -> std::vector<Program> { return {program_of("cermet::sizes::Sizes")}; }};

}  // namespace cermet::cuda::movement_sizes_file
