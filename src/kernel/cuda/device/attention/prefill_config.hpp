// Attention of many queries: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

struct PrefillConfig {
  int head_size, value_size, group,
      block;            ///< head sizes are multiples of 8; block: tokens of a page, 0 where keys are not paged
  DType q, kv, out;     ///< kv: as stored
  DType tile;           ///< bf16 or f16: what keys are multiplied as; queries of another type are two parts of this one
  bool plain;           ///< neither softcap nor alibi
  bool token_scales;    ///< keys and values of 8 bits have a scale for each token; otherwise one for each head, or none
  bool values_in_keys;  ///< values are the first columns of the keys
  int row_warps = 4, column_warps = 1;  ///< of a block; column_warps: 1 or 2 warps share rows, each with half of the
                                        ///< columns
  int weight_parts = 2;                 ///< of 16 bits that a weight is multiplied as: 1 or 2
  int warp_rows, keys, stages;  ///< warp_rows: 16 or 32; keys: of a tile in shared memory; tiles there, 2 or more
  int step;                     ///< keys that a warp takes at a time: 16, 32 or 64, a divisor of `keys`

  constexpr int warps() const { return row_warps * column_warps; }
  constexpr int rows() const { return row_warps * warp_rows; }
  constexpr bool widens() const { return kv != tile; }
  /// Parts of a query.
  constexpr int parts() const { return q == tile ? 1 : 2; }
  /// Columns of a tile for so many of a head: warps that share rows have the same number, in steps of 16.
  constexpr int padded(int size) const { return column_warps == 1 ? size : (size + 31) / 32 * 32; }
  /// Keys and values of a tile as they are stored, with their scales.
  constexpr int stored_bytes() const {
    return keys * (head_size + (values_in_keys ? 0 : value_size) + (token_scales ? 8 : 0));
  }
  /// The same as 16-bit elements.
  constexpr int wide_bytes() const {
    return tile_bytes(padded(head_size), keys) + (values_in_keys ? 0 : tile_bytes(padded(value_size), keys));
  }
  constexpr int query_bytes() const { return parts() * tile_bytes(padded(head_size), rows()); }
  /// Where two warps have a part of each score.
  constexpr int exchange_bytes() const { return column_warps == 1 ? 0 : warps() * warp_rows * step * 2; }
  constexpr int shared_bytes() const {
    return query_bytes() + (widens() ? wide_bytes() + stages * stored_bytes() : stages * wide_bytes()) +
           exchange_bytes();
  }

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("q", q), visit("kv", kv), visit("out", out), visit("tile", tile), visit("plain", plain);
    visit("token_scales", token_scales), visit("values_in_keys", values_in_keys);
    visit("row_warps", row_warps), visit("column_warps", column_warps);
    visit("weight_parts", weight_parts), visit("warp_rows", warp_rows);
    visit("keys", keys), visit("stages", stages), visit("step", step);
  }
};

struct PrefillParams {
  Params a;
  int32_t tiles;     ///< row tiles that all sequences can make together
  float scale_log2;  ///< scale times log2(e)
};

}  // namespace cermet::attention
