#include "kernel/cuda/kernels.hpp"

#include <vector>

#include "kernel/kernel_table.hpp"

namespace cermet::cuda {

#define X(file, variable)       \
  namespace file {              \
  extern const Kernel variable; \
  }
#include "kernel/cuda/kernels.inc"
#undef X

std::span<const Kernel* const> all_kernels() {
  static const std::vector<const Kernel*> kernels{
#define X(file, variable) &file::variable,
#include "kernel/cuda/kernels.inc"
#undef X
  };
  return kernels;
}

std::span<const Kernel* const> kernels_of(OpKind op) {
  static const std::vector<std::vector<const Kernel*>> by_op = kernels_by_operator(all_kernels());
  return by_op[static_cast<std::size_t>(op)];
}

}  // namespace cermet::cuda
