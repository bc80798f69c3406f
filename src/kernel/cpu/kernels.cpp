#include "kernel/cpu/kernels.hpp"

#include "kernel/kernel_table.hpp"

namespace cermet::cpu {

#define X(variable) extern const Kernel variable;
#include "kernel/cpu/kernels.inc"
#undef X

namespace {

const KernelTable& cpu_kernels() {
  static const KernelTable table({
#define X(variable) &variable,
#include "kernel/cpu/kernels.inc"
#undef X
  });
  return table;
}

}  // namespace

std::span<const Kernel* const> all_kernels() { return cpu_kernels().all(); }
std::span<const Kernel* const> kernels_of(OpKind op) { return cpu_kernels().of(op); }

}  // namespace cermet::cpu
