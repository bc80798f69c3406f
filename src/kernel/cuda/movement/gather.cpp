// Host half of gather: rows or elements by index.
#include "kernel/cuda/device/movement/gather.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/copy.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::movement_gather_file {
namespace {

void launch(const LaunchArgs& args, int axis) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  AxesBuilder<3> builder;
  int to = 0;
  for (int a = 0; a < axis; ++a, ++to) builder.append(x.shape[a], {x.strides[a], 0, y.strides[to]});
  for (int a = 0; a < indices.shape.rank(); ++a, ++to)
    builder.append(indices.shape[a], {0, indices.strides[a], y.strides[to]});
  for (int a = axis + 1; a < x.shape.rank(); ++a, ++to) builder.append(x.shape[a], {x.strides[a], 0, y.strides[to]});
  const auto bytes = byte_size(x.dtype);
  constexpr std::array<bool, 3> in_words{true, false, true};
  std::int64_t run = builder.run_length(in_words, 16 / bytes);
  while (run > 1 && !(x.strides[axis] % run == 0 && is_aligned(x.data, run * bytes) && is_aligned(y.data, run * bytes)))
    run /= 2;
  gather::Params params{.x = x.data,
                        .indices = indices.data,
                        .y = y.data,
                        .word_bytes = static_cast<std::uint32_t>(run * bytes),
                        .wide_indices = indices.dtype == DType::i64,
                        .per_thread = 1,
                        .size = x.shape[axis],
                        .slice_stride = x.strides[axis] / run,
                        .axes = builder.make(run, in_words)};
  if (params.axes.count >= std::int64_t{gather::threads} * 4 * args.queue->target().multiprocessors * 2)
    params.per_thread = 4;
  const std::int64_t each = std::int64_t{gather::threads} * params.per_thread, items = div_up(params.axes.count, each);
  args.queue->run(0, items, params);
}

}  // namespace

extern const Kernel movement_gather;
const Kernel movement_gather{.name = "movement.gather",
                             .op = OpKind::gather,
                             .summary = "words of 16 bytes where rows allow it, several for each thread",
                             .bind = [](const Problem& p) -> Launcher {
                               return [axis = wrap_axis(p.attributes.integer("axis"), p.input(0).rank())](
                                          const LaunchArgs& args) { launch(args, axis); };
                             },
                             .programs = [](const Problem&) -> std::vector<Program> {
                               return {{.header = "kernel/cuda/device/movement/gather.cuh",
                                        .task = "cermet::gather::Task",
                                        .threads = gather::threads,
                                        .min_blocks = 3}};
                             }};

}  // namespace cermet::cuda::movement_gather_file
