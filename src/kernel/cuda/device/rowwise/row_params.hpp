// What host and device of a row kernel agree on: where rows begin in memory, and the parameters of a launch.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {

/// Element 0 of row (i0, i1, i2) is at data + i0 * step[0] + i1 * step[1] + i2 * step[2] elements; the innermost
/// leading dimension is the first.
struct RowOperand {
  void* data;
  int64_t step[3];
};

/// Sizes of the two inner leading dimensions; inner 0: there is one, and rows are uniformly apart.
struct RowDims {
  uint32_t inner, middle;
};

struct QuantizedRows {
  RowOperand codes, scale, zero_point;  ///< quantized values [.., length]; scale and zero point [..] or [.., groups]
};

namespace row_region {

inline constexpr int most_operands = 12;

struct Params {
  RowDims dims;
  uint32_t rows;
  int32_t length;
  RowOperand operands[most_operands];  ///< what the region reads, then its results; of what is the same for all rows,
                                       ///< only `data` counts
  QuantizedRows out;                   ///< of a dynamic quantization at the end
};

}  // namespace row_region
}  // namespace cermet
