// Sums, means and maxima of the last dimension: anchors of regions along rows. Alone they are slower than the kernels
// of reductions, which split long rows.
#include "kernel/cuda/rowwise/row_region_kernel.hpp"

namespace cermet::cuda::rowwise_reduce_file {

namespace {

/// Without a model: the kernel of the reduction alone comes first.
Kernel kernel(const char* name, OpKind op) {
  Kernel made = row_kernel(name, op, "with what happens to its rows before and after: one pass over memory");
  made.cost = {};
  return made;
}

}  // namespace

extern const Kernel rowwise_reduce_sum, rowwise_reduce_mean, rowwise_reduce_max;
const Kernel rowwise_reduce_sum = kernel("rowwise.reduce_sum", OpKind::reduce_sum);
const Kernel rowwise_reduce_mean = kernel("rowwise.reduce_mean", OpKind::reduce_mean);
const Kernel rowwise_reduce_max = kernel("rowwise.reduce_max", OpKind::reduce_max);

}  // namespace cermet::cuda::rowwise_reduce_file
