// Host half of where.
#include "kernel/cuda/device/movement/where.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/pointwise/pointwise_region.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/roofline.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::movement_where_file {
namespace {

/// Stride of an operand along axis `a` of a result of rank `rank` that it broadcasts to.
std::int64_t broadcast_stride(const TensorView& view, int a, int rank) {
  const int own = a - (rank - view.shape.rank());
  return own < 0 || view.shape[own] == 1 ? 0 : view.strides[own];
}

void where(const LaunchArgs& args) {
  const TensorView &condition = args.inputs[0], &x = args.inputs[1], &other = args.inputs[op::where::other],
                   &y = args.outputs[0];
  if (y.elements() == 0) return;
  AxesBuilder<4> builder;
  const int rank = y.shape.rank();
  for (int a = 0; a < rank; ++a)
    builder.append(y.shape[a], {broadcast_stride(condition, a, rank), broadcast_stride(x, a, rank),
                                broadcast_stride(other, a, rank), y.strides[a]});
  where::Params params{condition.as<const std::uint8_t>(),           x.data, other.data,    y.data,
                       static_cast<std::uint32_t>(size_of(y.dtype)), 1,      builder.make()};
  if (params.axes.count >= std::int64_t{where::threads} * 4 * args.queue->target().multiprocessors * 2)
    params.per_thread = 4;
  const std::int64_t each = std::int64_t{where::threads} * params.per_thread, items = div_up(params.axes.count, each);
  args.queue->run(0, items, params);
}

}  // namespace

extern const Kernel movement_where;
const Kernel movement_where = with_regions({
    .name = "movement.where",
    .op = OpKind::where,
    .summary = "reads only the operand that is taken",
    .bind = [](const Problem&) -> Launcher { return where; },
    .programs = [](const Problem&) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/movement/where.cuh",
               .task = "cermet::where::Task",
               .threads = where::threads,
               .min_blocks = 4}};
    },
    .cost =
        [](const Region& region, const DeviceLimits& limits) {
          return roofline_seconds(region, limits.f32_operations_per_second, limits);
        },
});

}  // namespace cermet::cuda::movement_where_file
