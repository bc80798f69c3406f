// The kernels of a backend, and those of each operator.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "kernel/kernel.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

class KernelTable {
 public:
  explicit KernelTable(std::vector<const Kernel*> kernels)
      : all_(std::move(kernels)), by_operator_(all_operators().size()) {
    for (const Kernel* kernel : all_) by_operator_[static_cast<std::size_t>(kernel->op)].push_back(kernel);
  }

  std::span<const Kernel* const> all() const { return all_; }
  /// In their order.
  std::span<const Kernel* const> of(OpKind op) const { return by_operator_[static_cast<std::size_t>(op)]; }

 private:
  std::vector<const Kernel*> all_;
  std::vector<std::vector<const Kernel*>> by_operator_;  ///< the index is the OpKind
};

}  // namespace cermet
