// Host half of det.
#include "kernel/cuda/device/transform/det.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::transform_det_file {
namespace {

void launch(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  AxesBuilder<2> batch;
  for (int a = 0; a < y.shape.rank(); ++a) batch.append(y.shape[a], {x.strides[a], y.strides[a]});
  const det::Params params{.x = x.data,
                           .y = y.data,
                           .matrices = reinterpret_cast<double*>(args.workspace),
                           .size = x.shape.back(),
                           .stride = x.strides[x.shape.rank() - 2],
                           .batch = batch.make()};
  args.queue->run(0, batch.count(), params);
}

}  // namespace

extern const Kernel transform_det;
const Kernel transform_det{.name = "transform.det",
                           .op = OpKind::det,
                           .summary = "Gaussian elimination in float64, a block for each matrix",
                           .bind = [](const Problem&) -> Launcher { return launch; },
                           .workspace = [](const Problem& p, int) -> std::int64_t {
                             return p.input(0).elements().value(p.maximum) * static_cast<std::int64_t>(sizeof(double));
                           },
                           .programs = [](const Problem& p) -> std::vector<Program> {
                             return {{.header = "kernel/cuda/device/transform/det.cuh",
                                      .task = fmt::format("cermet::det::Task<cermet::det::Config{{.type = {}}}>",
                                                          device_name(p.input(0).dtype)),
                                      .threads = det::threads}};
                           }};

}  // namespace cermet::cuda::transform_det_file
