// Parameters of softmax.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

namespace cermet::softmax {

struct Params {
  RowOperand x, y;
  RowDims dims;
  uint32_t rows;
  int32_t length;
};

}  // namespace cermet::softmax
