// Decoding attention: what its two halves agree on. Rows (queries of a sequence times the heads that share a key-value
// head) are cut into query tiles of 8 or 16; a query tile of one key-value head is a span, whose keys come in units of
// warps * tile_keys. All units in order are dealt out evenly to the thread blocks, so that the time does not depend on
// how lengths are distributed.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

struct DecodeConfig {
  int head_size, value_size, kv_heads, group, block;  ///< head sizes are multiples of 8; block: tokens of a page
  DType q, kv, out;                                   ///< kv: bf16, f16, or of one byte; then sizes divide by 16
  int rows;                                           ///< of a query tile: 8 or 16
  int tile_keys, warps, stages;                       ///< tile_keys: of a warp, 16 or 32
  bool plain = false;                                 ///< neither softcap nor alibi
  int ranks = 1;              ///< blocks to which the KV tiles of a span are dealt out in turn: of a cluster, or pieces
  bool whole = false;         ///< a block has a whole span where lengths allow it: WholeSpanScheduler
  bool token_scales = false;  ///< of quantized values: one for each token rather than each head
  int weight_parts = 2;       ///< 16-bit numbers that a weight is multiplied as; of 8 rows always two
  int unit_tiles = 1;         ///< of decode_shared.cuh: tiles of a unit
  int column_parts = 0;       ///< parts of the value columns, which different warps have; 0: a warp has all
  bool values_in_keys = false;  ///< values are the first columns of the keys

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("kv_heads", kv_heads), visit("group", group),
        visit("block", block), visit("q", q), visit("kv", kv), visit("out", out), visit("rows", rows),
        visit("tile_keys", tile_keys), visit("warps", warps), visit("stages", stages), visit("plain", plain),
        visit("ranks", ranks), visit("whole", whole), visit("token_scales", token_scales),
        visit("weight_parts", weight_parts), visit("unit_tiles", unit_tiles), visit("column_parts", column_parts),
        visit("values_in_keys", values_in_keys);
  }
};

/// Bytes of one tile of keys and values of one warp, whose elements have `bytes` each; with one, scales follow.
constexpr int decode_stage_bytes(int head_size, int value_size, int tile_keys, int bytes) {
  return tile_bytes(head_size * bytes / 2, tile_keys) + tile_bytes(value_size * bytes / 2, tile_keys) +
         (bytes == 1 ? 8 * tile_keys : 0);
}
/// Maxima and sums of all warps' rows.
constexpr int decode_control_bytes(int warps, int rows) { return (warps * rows * 8 + 127) / 128 * 128; }
constexpr int decode_shared_bytes(int head_size, int value_size, int tile_keys, int bytes, int warps, int stages,
                                  int rows) {
  return decode_control_bytes(warps, rows) +
         warps * stages * decode_stage_bytes(head_size, value_size, tile_keys, bytes);
}
/// Floats of a block's partial of a span: maxima and sums of its rows, then their outputs.
constexpr int decode_partial_floats(int rows, int value_size) { return rows * (2 + value_size); }
constexpr int64_t decode_flag_bytes(int blocks) { return (16 * int64_t{blocks} + 255) / 256 * 256; }
constexpr int64_t decode_scratch_bytes(int blocks, int rows, int value_size) {
  return decode_flag_bytes(blocks) + 2 * int64_t{blocks} * decode_partial_floats(rows, value_size) * 4;
}

/// Whether each span, of which there are no more than `blocks`, has a block of its own, rather than a share of all
/// units: the longest of so many units is then longer than a share, by one unit because shares are rounded down here,
/// and by what combining the partials of a span takes.
constexpr bool whole_spans_suit(int longest, int units, int blocks) {
  constexpr int most_longer = 1 + 2;
  return longest <= units / blocks + most_longer;
}

/// With a cluster for each span: groups of four elements of the rows whose partials one block combines, and shared
/// memory with those of all blocks and a barrier that counts them.
constexpr int decode_inbox_each(int rows, int value_size, int ranks) {
  return (rows * (value_size / 4) + ranks - 1) / ranks;
}
constexpr int decode_inbox_bytes(int rows, int value_size, int ranks) {
  return ranks * decode_inbox_each(rows, value_size, ranks) * 24 + 16;
}
/// Keys and values that a block of a cluster prefetches into the L2 before it may read them.
inline constexpr int decode_prefetch_bytes = 64 << 10;

/// Of decode_shared.cuh: keys of a tile, and rows of a warp.
inline constexpr int decode_shared_keys = 32, decode_warp_rows = 16;
constexpr int decode_shared_tile_bytes(int head_size, int value_size, int bytes, bool values_in_keys) {
  return values_in_keys ? tile_bytes(head_size, decode_shared_keys)
                        : decode_stage_bytes(head_size, value_size, decode_shared_keys, bytes);
}
/// Shared memory of warps that have columns, before the stages: maxima and sums of each part, what products of rows are
/// multiplied with; queries, weights, both in `query_parts` and two 16-bit parts.
constexpr int decode_columns_exchange_bytes(int rows, int column_parts) {
  return (rows * (8 * column_parts + 4) + 127) / 128 * 128;
}
constexpr int decode_columns_control_bytes(int head_size, int rows, int column_parts, int query_parts, int unit_tiles) {
  return decode_columns_exchange_bytes(rows, column_parts) +
         rows / decode_warp_rows *
             (query_parts * tile_bytes(head_size, decode_warp_rows) +
              2 * tile_bytes(unit_tiles * decode_shared_keys, decode_warp_rows));
}

struct DecodeParams {
  Params a;
  int32_t thread_blocks;  ///< that share the work
  int32_t least_units;  ///< of a share at least, of which each key-value head has a whole number then; 0: shares are as
                        ///< equal as they can be
  float scale_log2;     ///< scale times log2(e)
};

}  // namespace cermet::attention
