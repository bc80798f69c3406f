// Attention of many queries: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

inline constexpr int prefill_warps = 4;

/// Queries of a thread block in `parts` parts, and `stages` times `keys` keys and values.
constexpr int prefill_shared_bytes(int head_size, int value_size, int warp_rows, int keys, int stages, int parts) {
  return parts * tile_bytes(head_size, prefill_warps * warp_rows) +
         stages * (tile_bytes(head_size, keys) + tile_bytes(value_size, keys));
}

struct PrefillParams {
  Params a;
  int32_t tiles;     ///< row tiles that all sequences can make together
  float scale_log2;  ///< scale times log2(e)
};

}  // namespace cermet::attention
