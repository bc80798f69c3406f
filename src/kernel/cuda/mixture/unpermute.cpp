// Host half of moe_unpermute.
#include "kernel/cuda/device/mixture/unpermute.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::mixture_unpermute_file {
namespace {

constexpr int threads = 128;

/// Elements of a thread's step: at most 16 bytes of any operand.
std::int64_t width_of(const LaunchArgs& args) {
  constexpr std::size_t residual = op::moe_unpermute::residual;
  std::size_t bytes = std::max(size_of(args.inputs[0].dtype), size_of(args.outputs[0].dtype));
  if (args.has(residual)) bytes = std::max(bytes, size_of(args.inputs[residual].dtype));
  return 16 / static_cast<std::int64_t>(bytes);
}

bool has_vectors(const TensorView& view, std::int64_t width) {
  return view.shape[1] % width == 0 && view.strides[0] % width == 0 &&
         is_aligned(view.data, width * byte_size(view.dtype));
}

void launch(const LaunchArgs& args) {
  constexpr std::size_t residual = op::moe_unpermute::residual;
  const TensorView &rows = args.inputs[0], &row_of = args.inputs[1], &weights = args.inputs[op::moe_unpermute::weights],
                   &y = args.outputs[0];
  const std::int64_t width = width_of(args), columns = y.shape[1];
  const bool vectors = has_vectors(rows, width) && has_vectors(y, width) &&
                       (!args.has(residual) || has_vectors(args.inputs[residual], width));
  const unpermute::Params params{.rows = rows.data,
                                 .row_of = row_of.data,
                                 .weights = weights.as<const float>(),
                                 .residual = args.has(residual) ? args.inputs[residual].data : nullptr,
                                 .y = y.data,
                                 .row_count = rows.shape[0],
                                 .columns = columns,
                                 .blocks = std::max<std::int64_t>(1, div_up(columns, threads * (vectors ? width : 1))),
                                 .rows_stride = rows.strides[0],
                                 .row_of_stride = row_of.strides[0],
                                 .weights_stride = weights.strides[0],
                                 .residual_stride = args.has(residual) ? args.inputs[residual].strides[0] : 0,
                                 .y_stride = y.strides[0],
                                 .wide_ids = row_of.dtype == DType::i64,
                                 .vectors = vectors};
  if (y.elements() == 0) return;
  args.queue->run(0, y.shape[0] * params.blocks, params);
  declare_operands(args);
}

}  // namespace

extern const Kernel moe_unpermute;
const Kernel moe_unpermute{
    .name = "moe.unpermute",
    .op = OpKind::moe_unpermute,
    .summary = "a thread for 16 bytes of a token's result, the rows it sums in flight together",
    .declines = [](const Problem& p) -> Decline {
      if (!p.input(1).dims[1].is_constant()) return "the number of rows of a token is not known";
      return std::nullopt;
    },
    .bind = [](const Problem&) -> Launcher { return launch; },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const bool has_residual = p.has(op::moe_unpermute::residual);
      const unpermute::Config config{.rows = p.input(0).dtype,
                                     .residual = has_residual ? p.input(op::moe_unpermute::residual).dtype : DType::f32,
                                     .out = p.outputs[0].dtype,
                                     .k = static_cast<int>(p.size(1, 1)),
                                     .has_residual = has_residual,
                                     .threads = threads};
      return {{.header = "kernel/cuda/device/mixture/unpermute.cuh",
               .task = fmt::format("cermet::unpermute::Task<cermet::unpermute::Config{}>", config_text(config)),
               .threads = threads}};
    }};

}  // namespace cermet::cuda::mixture_unpermute_file
