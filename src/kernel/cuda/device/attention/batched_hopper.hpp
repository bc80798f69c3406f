// Attention over batches of sequences with wgmma: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

struct BatchedHopperConfig {
  int head_size, group;  ///< head_size: of queries, keys and values, a multiple of 64
  DType type, out;       ///< type: bf16 or f16, of queries, keys and values
  bool plain;            ///< neither softcap nor alibi
  int keys, stages;      ///< keys of a tile; tiles in shared memory
  bool resident;         ///< tiles hold all keys of a sequence
  int row_tiles;         ///< of an item, most; 1 where tiles are not resident

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("group", group), visit("type", type), visit("out", out);
    visit("plain", plain), visit("keys", keys), visit("stages", stages), visit("resident", resident);
    visit("row_tiles", row_tiles);
  }
};

inline constexpr int batched_hopper_rows = 64;

/// Tiles of keys and of values, and of queries: two where a block has several.
constexpr int batched_hopper_bytes(int head_size, int keys, int stages, int row_tiles) {
  return 2 * head_size * (batched_hopper_rows * (row_tiles > 1 ? 2 : 1) + 2 * keys * stages);
}

}  // namespace cermet::attention
