// Attention of many queries with wide heads on Hopper: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma.hpp"

namespace cermet::attention {

struct WidePrefillConfig {
  int head_size, value_size, group,
      block;      ///< sizes are multiples of 8 up to 576 and 512; block: tokens of a page, 0 where keys are not paged
  DType kv, out;  ///< kv: bf16 or f16, the type of the queries, too
  bool plain;     ///< neither softcap nor alibi
  bool values_in_keys;        ///< values are the first columns of the keys, in the same memory
  int cluster;                ///< blocks that share keys: 1, or 2, each of which copies half of them to both
  int early_even, early_odd;  ///< steps of a warpgroup's scores that begin before it waits for the other's weights

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("kv", kv), visit("out", out), visit("plain", plain), visit("values_in_keys", values_in_keys);
    visit("cluster", cluster), visit("early_even", early_even), visit("early_odd", early_odd);
  }

  static constexpr int keys = 64, parts = 1;  ///< keys of a tile; 16-bit numbers that a weight is multiplied as
  static constexpr bool columns = false, token_scales = false;  ///< as in TmaPrefillConfig
  static constexpr bool rounds_sums() { return false; }
  static constexpr int element_bytes() { return 2; }
  static constexpr int piece_elements() { return 64; }
  static constexpr int warpgroups = 2, threads = 128 * (warpgroups + 1);
  static constexpr int consumer_registers = 232, producer_registers = 40;
  static constexpr int notes = 2, note_bytes = 64;  ///< items that consumers may know of
  static constexpr int rows() { return 64; }        ///< of a tile, of which a group may leave some unused
  constexpr int heads() const { return group < rows() ? group : rows(); }  ///< of a tile, for each of its tokens
  /// Tokens of the tiles of a cluster: those of both, or those whose heads do not fit one.
  constexpr int cluster_tokens() const { return group > rows() ? 1 : cluster * tokens(); }
  /// What a cluster's tiles divide the heads of its tokens into.
  constexpr int head_tiles() const {
    const int heads_of_tiles = group > rows() ? cluster * rows() : rows();
    return (group + heads_of_tiles - 1) / heads_of_tiles;
  }
  constexpr int tokens() const { return rows() / heads(); }  ///< of a tile

  /// Pieces of 64 columns (128 bytes) of a tile's 64 rows.
  static constexpr int piece_bytes = 64 * 128;
  static constexpr int pieces(int size) { return (size + 63) / 64; }
  constexpr int key_pieces() const { return pieces(head_size); }
  constexpr int query_pieces() const { return key_pieces(); }
  constexpr int value_pieces() const { return pieces(value_size); }
  constexpr int region_pieces() const { return key_pieces() > value_pieces() ? key_pieces() : value_pieces(); }
  /// Pieces of results that the first warpgroup has; the second one has the others, of which there may be one less.
  constexpr int half_pieces() const { return (value_pieces() + 1) / 2; }
  constexpr int value_columns() const { return 64 * half_pieces(); }  ///< of a warpgroup
  /// Whether weights take the place of a piece of keys that are no values.
  constexpr bool weights_in_keys() const { return key_pieces() > value_pieces(); }
  /// Rows of keys that a copy brings: a block's share of the tile, or as many as divide both it and a page.
  constexpr int box_rows() const {
    int a = keys / cluster, b = block;
    while (b != 0) {
      const int rest = a % b;
      a = b, b = rest;
    }
    return a;
  }

  constexpr int weight_bytes() const { return weights_in_keys() ? 0 : 2 * piece_bytes; }
  static constexpr int row_bytes = 2 * 2 * 128 * 8 + 64;  ///< bases and sums of two rows of each consumer, and flags
  constexpr int barriers() const { return 2 + 4 * region_pieces() + 2 * notes + 2; }
  constexpr int shared_bytes() const {
    return (key_pieces() + 2 * region_pieces()) * piece_bytes + weight_bytes() + row_bytes + notes * note_bytes +
           8 * barriers();
  }
};

}  // namespace cermet::attention
