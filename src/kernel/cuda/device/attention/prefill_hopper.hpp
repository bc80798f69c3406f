// Attention of many queries with wgmma: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/prefill_config.hpp"

namespace cermet::attention {

struct HopperPrefillConfig {
  int head_size, value_size, group,
      block;         ///< head sizes are multiples of 64; block: tokens of a page, 0 where keys are not paged
  DType q, kv, out;  ///< kv: bf16 or f16; queries of another type are multiplied as two parts of this one
  bool plain;        ///< neither softcap nor alibi
  int warpgroups;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("q", q), visit("kv", kv), visit("out", out), visit("plain", plain);
    visit("warpgroups", warpgroups);
  }
};

inline constexpr int hopper_keys = 64,
                     hopper_stages = 3;  ///< keys of a tile; tiles of keys, and of values, in shared memory

/// Queries of a thread block in `parts` parts, 64 for each warpgroup, and the tiles of keys and of values. Head sizes
/// are multiples of 64.
constexpr int hopper_prefill_bytes(int head_size, int value_size, int warpgroups, int parts) {
  return 128 * warpgroups * parts * head_size + 2 * hopper_stages * hopper_keys * (head_size + value_size);
}

}  // namespace cermet::attention
