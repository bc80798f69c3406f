// Attention of many queries with wgmma: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/prefill_config.hpp"

namespace cermet::attention {

inline constexpr int hopper_keys = 64,
                     hopper_stages = 3;  ///< keys of a tile; tiles of keys, and of values, in shared memory

/// Queries of a thread block in `parts` parts, 64 for each warpgroup, and the tiles of keys and of values. Head sizes
/// are multiples of 64.
constexpr int hopper_prefill_bytes(int head_size, int value_size, int warpgroups, int parts) {
  return 128 * warpgroups * parts * head_size + 2 * hopper_stages * hopper_keys * (head_size + value_size);
}

}  // namespace cermet::attention
