// Attention over batches of short sequences with wgmma and bulk copies: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/batched.hpp"
#include "kernel/cuda/device/tensor_map.hpp"

namespace cermet::attention {

/// Maps have all sequences' rows one below the other, and the elements of all heads side by side.
struct BatchedShortParams {
  TensorMapBytes q, k, v;
  BatchedParams b;
};

inline constexpr int batched_short_head = 64, batched_short_rows = 64;

/// Shared memory: queries, keys and values of an item, and the barriers that they arrive at. `rows` and `keys` are whole tiles'.
constexpr int batched_short_bytes(int rows, int keys) { return 2 * batched_short_head * (rows + 2 * keys) + 32; }

}  // namespace cermet::attention
