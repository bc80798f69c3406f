// Host half of matmul over f64 and integers.
#include "kernel/cuda/device/gemm/plain.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::gemm_plain_file {
namespace {

/// Stride of an operand along axis `a` of the leading ones of a result of rank `rank`.
std::int64_t batch_stride(const TensorView& view, int a, int rank) {
  const int own = a - (rank - view.shape.rank());
  return own < 0 || view.shape[own] == 1 ? 0 : view.strides[own];
}

void launch(const LaunchArgs& args, bool transpose_a, bool transpose_b) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const int rank = y.shape.rank(), a_last = a.shape.rank() - 1, b_last = b.shape.rank() - 1;
  AxesBuilder<3> batches;
  for (int axis = 0; axis + 2 < rank; ++axis)
    batches.append(y.shape[axis], {batch_stride(a, axis, rank), batch_stride(b, axis, rank), y.strides[axis]});
  const std::int64_t rows = y.shape[rank - 2], columns = y.shape[rank - 1];
  const plain::Params p{.a = a.data,
                        .b = b.data,
                        .y = y.data,
                        .rows = rows,
                        .columns = columns,
                        .length = a.shape[transpose_a ? a_last - 1 : a_last],
                        .a_row = a.strides[transpose_a ? a_last : a_last - 1],
                        .a_step = a.strides[transpose_a ? a_last - 1 : a_last],
                        .b_column = b.strides[transpose_b ? b_last - 1 : b_last],
                        .b_step = b.strides[transpose_b ? b_last : b_last - 1],
                        .y_row = y.strides[rank - 2],
                        .tiles_down = div_up(rows, plain::tile_rows),
                        .tiles_across = div_up(columns, plain::tile_columns),
                        .batches = batches.make()};
  args.queue->run(0, p.tiles_down * p.tiles_across * p.batches.count, p);
}

const char* element_of(DType dtype) {
  return dtype == DType::f64 ? "double" : size_of(dtype) == 4 ? "uint32_t" : "uint64_t";
}

}  // namespace

extern const Kernel gemm_matmul_plain;
const Kernel gemm_matmul_plain{
    .name = "gemm.matmul.plain",
    .op = OpKind::matmul,
    .summary = "f64 and integers, a thread for each result",
    .declines = [](const Problem& p) -> Decline {
      const DType type = p.input(0).dtype;
      if (dtypes::real.contains(type))
        return fmt::format("a is {}; only f64 and integers are multiplied as they lie in memory", name_of(type));
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [ta = p.attributes.flag("transpose_a"), tb = p.attributes.flag("transpose_b")](const LaunchArgs& args) {
        launch(args, ta, tb);
      };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/gemm/plain.cuh",
               .task = fmt::format("cermet::plain::Task<{}>", element_of(p.input(0).dtype)),
               .threads = plain::threads,
               .divides_warps = true}};
    },
};

}  // namespace cermet::cuda::gemm_plain_file
