// Attention over batches of sequences with wgmma: what its two halves agree on.
#pragma once

namespace cermet::attention {

inline constexpr int batched_hopper_rows = 64;

/// Tiles of keys and of values, and of queries: two where a block has several.
constexpr int batched_hopper_bytes(int head_size, int keys, int stages, int row_tiles) {
  return 2 * head_size * (batched_hopper_rows * (row_tiles > 1 ? 2 : 1) + 2 * keys * stages);
}

}  // namespace cermet::attention
