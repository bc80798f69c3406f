// A factor for each element of a product's rows, alike for all rows of a sample: the gate of a squeeze-and-excitation block before a convolution of single
// pixels. Rows are multiplied where they are packed.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

struct RowFactors {
  std::size_t x, factors;  ///< operands of the region

  /// Of a region whose anchor is a convolution and whose only node before it is such a product.
  static std::optional<RowFactors> of(const Region& region);
};

/// Those of a launch: row r has data[r / rows * step ..].
struct FactorRows {
  const float* data = nullptr;  ///< null: none
  std::int64_t rows = 1, step = 0;

  FactorRows() = default;
  FactorRows(const RowFactors& of, const LaunchArgs& args);
};

}  // namespace cermet::cpu
