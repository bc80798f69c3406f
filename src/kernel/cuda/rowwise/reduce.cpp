// Sums, means and maxima of the last dimension: anchors of regions along rows. Alone they are slower than the kernels of reductions, which split long rows.
#include "kernel/cuda/rowwise/region.hpp"

namespace cermet::cuda {

extern const Kernel rowwise_reduce_sum, rowwise_reduce_mean, rowwise_reduce_max;
constexpr const char* const summary = "with what happens to its rows before and after: one pass over memory";
const Kernel rowwise_reduce_sum = row_kernel("rowwise.reduce_sum", OpKind::reduce_sum, summary);
const Kernel rowwise_reduce_mean = row_kernel("rowwise.reduce_mean", OpKind::reduce_mean, summary);
const Kernel rowwise_reduce_max = row_kernel("rowwise.reduce_max", OpKind::reduce_max, summary);

}  // namespace cermet::cuda
