// Parameters of a region of row reductions and elementwise operators.
#pragma once

#include "kernel/cuda/device/rowwise/quantize_row.hpp"

namespace cermet::row_region {

inline constexpr int most_operands = 12;

struct Params {
  RowDims dims;
  uint32_t rows;
  int32_t length;
  RowOperand operands[most_operands];  ///< what the region reads, then its results; of what is the same for all rows,
                                       ///< only `data` counts
  QuantizedRows out;                   ///< of a dynamic quantization at the end
};

}  // namespace cermet::row_region
