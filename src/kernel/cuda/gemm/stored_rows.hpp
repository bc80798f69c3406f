// Results that lie in rows, with what an epilogue reads beside them, as a launch finds them.
#pragma once

#include <optional>

#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/gemm/product.hpp"

namespace cermet::cuda {

/// What kernels need of a launch whose results, and the operands of its epilogue, are rows that are evenly apart.
struct StoredRows {
  std::int64_t count = 0;
  epilogue::ResultRows to{};
  std::array<epilogue::Operand, epilogue::most_extras> extra{};
  bool vectors = false;  ///< runs of `run` neighbours from multiples of `run` on are aligned

  /// Nothing where rows are not evenly apart.
  static std::optional<StoredRows> of(const Product& product, const LaunchArgs& args, std::int64_t run);
};

}  // namespace cermet::cuda
