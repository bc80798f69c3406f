// Attention over batches of short sequences with wgmma and bulk copies: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/batched.hpp"
#include "kernel/cuda/device/tensor_map.hpp"

namespace cermet::attention {

struct BatchedShortConfig {
  DType type;  ///< bf16 or f16, of all
  int heads;
  int keys;          ///< of a sequence
  int tile_keys;     ///< of a tile of keys
  int row_tiles;     ///< of an item, most
  bool rows_differ;  ///< whether biases and masks differ from query to query

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("heads", heads), visit("keys", keys), visit("tile_keys", tile_keys);
    visit("row_tiles", row_tiles), visit("rows_differ", rows_differ);
  }
};

/// Where rows of a head begin in a map: its column, and its row beside that of the sequence.
struct ShortRows {
  int32_t head_column, head_row, batch_row;
};

/// Maps have tiles of 64 columns, 128-byte swizzle: of 64 queries, which past a sequence give rows that are not stored,
/// and of just the keys that it has.
struct BatchedShortParams {
  TensorMapBytes q, k, v;
  ShortRows q_rows, k_rows, v_rows;
  BatchedParams b;
};

inline constexpr int batched_short_head = 64, batched_short_rows = 64;

/// Shared memory: queries, keys and values of an item, and the barriers that they arrive at. `rows` and `keys` are
/// whole tiles'.
constexpr int batched_short_bytes(int rows, int keys) { return 2 * batched_short_head * (rows + 2 * keys) + 32; }

}  // namespace cermet::attention
