// Parameters of dynamic_quant.
#pragma once

#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet::dynamic_quant {

struct Params {
  RowOperand x;
  QuantizedRows out;
  RowDims dims;
  uint32_t rows;
  int32_t length;
  const void* smooth;  ///< [length], or [experts, length] with rows smooth_step elements apart
  int64_t smooth_step;
  RowOperand index;            ///< ids of the rows
  const void* offsets;         ///< [experts + 1], of dense row numbers
  int64_t first_row, experts;  ///< dense number of row 0
  uint32_t* range;             ///< per-tensor scale: bits of its high and low end
};

}  // namespace cermet::dynamic_quant
