// Statistics of a row, of which each thread has a part.
#pragma once

#include "kernel/cuda/device/rowwise/reduce_row.cuh"

namespace cermet::norm {

/// This thread's part of the sum of (v - mean)^2.
template <class Row>
CERMET_DEVICE float square_sum(Row& row, float mean = 0) {
  float squares[2] = {0, 0};  // two chains
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) squares[k % 2] = fmaf(v[k] - mean, v[k] - mean, squares[k % 2]);
  });
  return squares[0] + squares[1];
}

template <class Row>
CERMET_DEVICE float value_sum(Row& row) {
  float total[2] = {0, 0};
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) total[k % 2] += v[k];
  });
  return total[0] + total[1];
}

CERMET_DEVICE float inverse_root(float squares, int length, float eps) {
  return rsqrtf(squares / static_cast<float>(length) + eps);
}

}  // namespace cermet::norm
