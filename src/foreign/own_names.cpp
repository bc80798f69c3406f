#include "foreign/own_names.hpp"

#include <algorithm>

#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"

namespace cermet::foreign {

bool is_own_kernel(std::string_view name) {
  const auto has = [&](std::span<const Kernel* const> kernels) {
    return std::ranges::any_of(kernels, [&](const Kernel* kernel) { return kernel->name == name; });
  };
  return has(cpu::all_kernels()) || has(cuda::all_kernels());
}

}  // namespace cermet::foreign
