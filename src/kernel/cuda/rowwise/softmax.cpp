// Host half of softmax: how its rows lie over threads.
#include "kernel/cuda/rowwise/region.hpp"

namespace cermet::cuda {

extern const Kernel rowwise_softmax;
const Kernel rowwise_softmax = row_kernel("rowwise.softmax", OpKind::softmax, "a row in registers: one pass over memory", [](const Problem& p) {
  return RowNeeds{.width = vector_width({p.input(0).dtype, p.outputs[0].dtype})};
});

}  // namespace cermet::cuda
