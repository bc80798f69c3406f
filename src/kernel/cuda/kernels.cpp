#include "kernel/cuda/kernels.hpp"

#include "kernel/kernel_table.hpp"

namespace cermet::cuda {

#define X(file, variable)       \
  namespace file {              \
  extern const Kernel variable; \
  }
#include "kernel/cuda/kernels.inc"
#undef X

namespace {

const KernelTable& cuda_kernels() {
  static const KernelTable table({
#define X(file, variable) &file::variable,
#include "kernel/cuda/kernels.inc"
#undef X
  });
  return table;
}

}  // namespace

std::span<const Kernel* const> all_kernels() { return cuda_kernels().all(); }
std::span<const Kernel* const> kernels_of(OpKind op) { return cuda_kernels().of(op); }

}  // namespace cermet::cuda
