// Host half of the embedding task.
#include "kernel/cuda/device/movement/embedding.hpp"

#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::movement_embedding_file {
namespace {

/// Threads for a row in steps of 16 bytes: enough that each takes a few.
int threads_of(const Problem& problem) { return problem.size(1, 1) > 2048 ? 256 : 128; }

std::vector<Program> programs(const Problem& problem) {
  const embedding::Config config{.hidden = static_cast<int>(problem.size(1, 1)),
                                 .table = problem.input(1).dtype,
                                 .out = problem.outputs[0].dtype,
                                 .threads = threads_of(problem)};
  return {{.header = "kernel/cuda/device/movement/embedding.cuh",
           .task = fmt::format("cermet::embedding::Task<cermet::embedding::Config{}>", config_text(config)),
           .threads = config.threads}};
}

/// Rows of a matrix or of several start at multiples of 16 bytes.
bool has_vector_rows(const TensorView& view) {
  bool aligned = is_aligned(view.data, 16);
  for (int a = 0; a + 1 < view.shape.rank(); ++a)
    aligned = aligned && view.strides[a] * byte_size(view.dtype) % 16 == 0;
  return aligned;
}

void launch(const LaunchArgs& args) {
  const TensorView &ids = args.inputs[0], &table = args.inputs[1], &out = args.outputs[0];
  AxesBuilder<2> tokens;
  for (int a = 0; a < ids.shape.rank(); ++a) tokens.append(ids.shape[a], {ids.strides[a], out.strides[a]});
  const embedding::Params params{.ids = ids.data,
                                 .table = table.data,
                                 .out = out.data,
                                 .vocabulary = table.shape[0],
                                 .table_stride = table.strides[0],
                                 .wide_ids = ids.dtype == DType::i64,
                                 .vectors = has_vector_rows(table) && has_vector_rows(out),
                                 .tokens = tokens.make()};
  if (tokens.count() == 0) return;
  args.queue->run(0, tokens.count(), params);
}

}  // namespace

extern const Kernel movement_embedding;
const Kernel movement_embedding{
    .name = "movement.embedding",
    .op = OpKind::embedding,
    .summary = "a thread block for each token, 16 bytes for each thread where rows allow it",
    .bind = [](const Problem&) -> Launcher { return launch; },
    .programs = programs};

}  // namespace cermet::cuda::movement_embedding_file
