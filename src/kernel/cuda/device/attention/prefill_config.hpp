// Attention of many queries: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

struct PrefillConfig {
  int head_size, value_size, group,
      block;                    ///< head sizes are multiples of 8; block: tokens of a page, 0 where keys are not paged
  DType q, kv, out;             ///< kv: bf16 or f16; queries of another type are multiplied as two parts of this one
  bool plain;                   ///< neither softcap nor alibi
  int warp_rows, keys, stages;  ///< warp_rows: 16 or 32; keys: of a tile in shared memory; tiles there, 2 or more
  int step;                     ///< keys that a warp takes at a time: 32 or 64, a divisor of `keys`

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("q", q), visit("kv", kv), visit("out", out), visit("plain", plain);
    visit("warp_rows", warp_rows), visit("keys", keys), visit("stages", stages), visit("step", step);
  }
};

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
