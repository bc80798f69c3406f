// The scores of a tile as wgmma leaves them in a thread: [4 j + 2 h + i] is row lane / 4 + 8 h of its warp's 16, and
// key 8 j + 2 (lane % 4) + i of `keys`.
#pragma once

#include "kernel/cuda/device/attention/tile_rows.cuh"

namespace cermet::attention {

/// Calls body(score, j, i, key) for row h. `first`: the tile's first key.
template <int size, class Body>
CERMET_DEVICE void for_scores(float (&scores)[size], int h, int first, Body&& body) {
#pragma unroll
  for (int j = 0; j < size / 4; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      body(scores[4 * j + 2 * h + i], j, i, first + 8 * j + 2 * static_cast<int>(lane_index() % 4) + i);
}

/// The largest score of row h, in all four lanes that hold it. NaN does not show: it comes back with its weight.
template <int size>
CERMET_DEVICE float largest_score(const float (&scores)[size], int h) {
  float top = -infinity();
#pragma unroll
  for (int j = 0; j < size / 4; ++j) top = fmaxf(top, fmaxf(scores[4 * j + 2 * h], scores[4 * j + 2 * h + 1]));
  top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
  return fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
}

/// Scores of row h become weights, 2^(score scale - base). Returns the sum of this lane's.
template <int size>
CERMET_DEVICE float to_weights(float (&scores)[size], int h, float scale, float base) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < size / 4; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float& weight = scores[4 * j + 2 * h + i];
      weight = exp2_approximate(fmaf(weight, scale, -base));
      sum += weight;
    }
  return sum;
}

}  // namespace cermet::attention
