// Host half of gather_nd.
#include "kernel/cuda/device/movement/gather_nd.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/coordinates.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::movement_gather_nd_file {
namespace {

void launch(const LaunchArgs& args, int batch) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const int lead = indices.shape.rank() - 1, n = static_cast<int>(indices.shape.back());
  AxesBuilder<3> builder;
  for (int a = 0; a < lead; ++a)
    builder.append(indices.shape[a], {a < batch ? x.strides[a] : 0, indices.strides[a], y.strides[a]});
  for (int a = batch + n; a < x.shape.rank(); ++a)
    builder.append(x.shape[a], {x.strides[a], 0, y.strides[lead + a - batch - n]});
  const auto bytes = byte_size(x.dtype);
  constexpr std::array<bool, 3> in_words{true, false, true};
  std::int64_t run = builder.run_length(in_words, 16 / bytes);
  const auto fits = [&] {
    for (int j = 0; j < n; ++j)
      if (x.strides[batch + j] % run != 0) return false;
    return is_aligned(x.data, run * bytes) && is_aligned(y.data, run * bytes);
  };
  while (run > 1 && !fits()) run /= 2;
  const gather_nd::Params params{.x = x.data,
                                 .y = y.data,
                                 .word_bytes = static_cast<std::uint32_t>(run * bytes),
                                 .coordinates = make_coordinates(x, batch, indices, run),
                                 .axes = builder.make(run, in_words)};
  const std::int64_t items = div_up(params.axes.count, gather_nd::threads);
  args.queue->run(0, items, params);
}

}  // namespace

extern const Kernel movement_gather_nd;
const Kernel movement_gather_nd{.name = "movement.gather_nd",
                                .op = OpKind::gather_nd,
                                .summary = "a word of up to 16 bytes for each thread",
                                .bind = [](const Problem& p) -> Launcher {
                                  return [batch = static_cast<int>(p.attributes.integer("batch_dims"))](
                                             const LaunchArgs& args) { launch(args, batch); };
                                },
                                .programs = [](const Problem&) -> std::vector<Program> {
                                  return {{.header = "kernel/cuda/device/movement/gather_nd.cuh",
                                           .task = "cermet::gather_nd::Task",
                                           .threads = gather_nd::threads}};
                                }};

}  // namespace cermet::cuda::movement_gather_nd_file
