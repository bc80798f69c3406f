// Lists of kernels by the operator that they compute.
#pragma once

#include <span>
#include <vector>

#include "kernel/kernel.hpp"
#include "op/operator.hpp"

namespace cermet {

/// Kernels of each operator, in their order; the index is the OpKind.
inline std::vector<std::vector<const Kernel*>> kernels_by_operator(std::span<const Kernel* const> kernels) {
  std::vector<std::vector<const Kernel*>> lists(all_operators().size());
  for (const Kernel* kernel : kernels) lists[static_cast<std::size_t>(kernel->op)].push_back(kernel);
  return lists;
}

}  // namespace cermet
