// Attention of many queries with bulk tensor copies: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"
#include "kernel/cuda/device/tensor_map.hpp"

namespace cermet::attention {

struct TmaPrefillConfig {
  int head_size, value_size, group,
      block;      ///< head sizes are multiples of 8 up to 256; block: tokens of a page, 0 where keys are not paged
  DType kv, out;  ///< kv: bf16 or f16, the type of the queries, too
  bool plain;     ///< neither softcap nor alibi
  int warpgroups, keys, stages, query_buffers;  ///< warpgroups of consumers; keys: of a tile, a multiple of 16
  bool overlaps = false;  ///< whether an item's first scores are made beside the results of the one before
  int parts;  ///< 16-bit numbers that a weight is multiplied as: 1, or 2, which leaves it 16 (bf16) or 22 (f16) bits

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("kv", kv), visit("out", out), visit("plain", plain);
    visit("warpgroups", warpgroups), visit("keys", keys), visit("stages", stages);
    visit("query_buffers", query_buffers), visit("overlaps", overlaps), visit("parts", parts);
  }

  constexpr int rows() const { return 64 * warpgroups; }   ///< of a tile, of which a group may leave some unused
  constexpr int tokens() const { return rows() / group; }  ///< of a tile
  constexpr int threads() const { return 128 * (warpgroups + 1); }
  /// Pieces of 64 elements (128 bytes) that a row is cut into; each piece lies with all rows of the tile.
  static constexpr int pieces(int size) { return (size + 63) / 64; }
  constexpr int query_bytes() const { return rows() * 128 * pieces(head_size); }
  constexpr int key_bytes() const { return keys * 128 * pieces(head_size); }
  constexpr int value_bytes() const { return keys * 128 * pieces(value_size); }
  /// Columns of the products with values: the next width that there is an instruction for.
  constexpr int value_columns() const {
    const int step = value_size <= 32 ? 32 : value_size <= 128 ? 16 : 32;
    return (value_size + step - 1) / step * step;
  }
  /// Rows of keys that a copy brings: the tile, or as many as divide both it and a page.
  constexpr int box_rows() const {
    int a = keys, b = block;
    while (b != 0) {
      const int rest = a % b;
      a = b, b = rest;
    }
    return a;
  }
  /// Registers of a consumer and of a producer; a launch gives all threads the same number, from which they move.
  constexpr int consumer_registers() const { return warpgroups == 2 ? 232 : warpgroups == 3 ? 160 : 112; }
  constexpr int producer_registers() const { return warpgroups == 2 ? 40 : 32; }
  static constexpr int notes = 2;  ///< items that consumers may know of
  static constexpr int note_bytes = 64;
  constexpr int barriers() const { return 2 * query_buffers + 4 * stages + 2 * notes + 1; }
  constexpr int shared_bytes() const {
    return query_buffers * query_bytes() + stages * (key_bytes() + value_bytes()) + notes * note_bytes + 8 * barriers();
  }
};

struct TmaPrefillParams {
  Params a;
  int32_t tiles;           ///< tiles of tokens that all sequences can make together
  float scale_log2;        ///< scale times log2(e)
  TensorMapBytes q, k, v;  ///< {64 elements, heads of a group, tokens}; {64 elements, rows, head, page}
};

}  // namespace cermet::attention
