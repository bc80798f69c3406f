// Host half of the embedding task.
#include "kernel/cuda/device/movement/embedding.hpp"

#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {
namespace {

constexpr int threads = 256;

std::vector<Program> programs(const Problem& problem) {
  const DType ids = problem.input(0).dtype, table = problem.input(1).dtype, out = problem.outputs[0].dtype;
  return {{.header = "kernel/cuda/device/movement/embedding.cuh",
           .task = fmt::format("cermet::embedding::Task<cermet::embedding::Config{{.hidden = {}, .ids = {}, .table = {}, .out = {}, .threads = {}}}>",
                               problem.size(1, 1), device_name(ids), device_name(table), device_name(out), threads),
           .threads = threads}};
}

Launcher bind(const Problem&) {
  return [](const LaunchArgs& args) {
    const TensorView &ids = args.inputs[0], &table = args.inputs[1], &out = args.outputs[0];
    const Rows rows(out);
    const std::int64_t step = out.shape.rank() > 1 ? out.strides[out.shape.rank() - 2] : out.shape.back();
    args.queue->run(0, rows.count(), embedding::Params{ids.data, table.data, out.data, table.shape[0], table.strides[0], step});
  };
}

}  // namespace

extern const Kernel movement_embedding;
const Kernel movement_embedding{
    .name = "movement.embedding", .op = OpKind::embedding, .summary = "a thread block for each token", .bind = bind, .programs = programs};

}  // namespace cermet::cuda
