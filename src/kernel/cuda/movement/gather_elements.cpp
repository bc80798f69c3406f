// Host half of gather_elements.
#include "kernel/cuda/device/movement/gather_elements.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::movement_gather_elements_file {
namespace {

void launch(const LaunchArgs& args, int axis) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  AxesBuilder<3> axes;
  for (int a = 0; a < y.shape.rank(); ++a)
    axes.append(y.shape[a], {a == axis ? 0 : x.strides[a], indices.strides[a], y.strides[a]});
  const gather_elements::Params params{.x = x.data,
                                       .indices = indices.data,
                                       .y = y.data,
                                       .element_bytes = static_cast<std::uint32_t>(size_of(x.dtype)),
                                       .wide_indices = indices.dtype == DType::i64,
                                       .size = x.shape[axis],
                                       .stride = x.strides[axis],
                                       .axes = axes.make()};
  const std::int64_t items = div_up(params.axes.count, gather_elements::threads);
  args.queue->run(0, items, params);
}

}  // namespace

extern const Kernel movement_gather_elements;
const Kernel movement_gather_elements{.name = "movement.gather_elements",
                                      .op = OpKind::gather_elements,
                                      .summary = "an element for each thread",
                                      .bind = [](const Problem& p) -> Launcher {
                                        return [axis = wrap_axis(p.attributes.integer("axis"), p.input(0).rank())](
                                                   const LaunchArgs& args) { launch(args, axis); };
                                      },
                                      .programs = [](const Problem&) -> std::vector<Program> {
                                        return {{.header = "kernel/cuda/device/movement/gather_elements.cuh",
                                                 .task = "cermet::gather_elements::Task",
                                                 .threads = gather_elements::threads}};
                                      }};

}  // namespace cermet::cuda::movement_gather_elements_file
