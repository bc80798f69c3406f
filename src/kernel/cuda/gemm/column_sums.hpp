// Host half of the sums over the reduction of a weight's columns (device/gemm/column_sums.cuh), a launch before
// products whose left operand has zero points.
#pragma once

#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

Program column_sums_program();
/// Sums of weight [n, k] int8 into memory of column_sums_bytes(n).
void launch_column_sums(const TaskQueue& queue, std::size_t program, const TensorView& weight, std::byte* sums);
std::int64_t column_sums_bytes(std::int64_t n);

}  // namespace cermet::cuda
