#include "kernel/cuda/gemm/column_sums.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/gemm/column_sums.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda {

Program column_sums_program() {
  return {.header = "kernel/cuda/device/gemm/column_sums.cuh",
          .task = "cermet::gemm::ColumnSums",
          .threads = 32 * gemm::column_sums_item,
          .divides_warps = true};
}

void launch_column_sums(const TaskQueue& queue, std::size_t program, const TensorView& weight, std::byte* sums) {
  const std::int64_t n = weight.shape[0], k = weight.shape[1];
  const gemm::ColumnSumsParams p{weight.as<const std::int8_t>(), reinterpret_cast<std::int32_t*>(sums),
                                 n > 1 ? weight.strides[0] : k, narrow(n, "product", "columns"),
                                 narrow(k, "product", "terms of a sum")};
  if (n == 0) return;
  queue.run(program, div_up(n, gemm::column_sums_item), p);
  queue.declare({byte_range(weight)}, {ByteRange{sums, column_sums_bytes(n)}});
}

std::int64_t column_sums_bytes(std::int64_t n) { return n * static_cast<std::int64_t>(sizeof(std::int32_t)); }

}  // namespace cermet::cuda
