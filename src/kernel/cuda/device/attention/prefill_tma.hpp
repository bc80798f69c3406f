// Attention of many queries with bulk tensor copies: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"
#include "kernel/cuda/device/tensor_map.hpp"

namespace cermet::attention {

struct TmaPrefillConfig {
  int head_size, value_size, group,
      block;      ///< head sizes are multiples of 8 up to 256; block: tokens of a page, 0 where keys are not paged
  DType kv, out;  ///< kv: bf16, f16 or e4m3, the type of the queries, too
  bool plain;     ///< neither softcap nor alibi
  int warpgroups, keys, stages, query_buffers;  ///< warpgroups of consumers; keys: of a tile, a multiple of 16
  bool overlaps = false;  ///< whether an item's first scores are made beside the results of the one before
  int parts;  ///< 16-bit numbers that a weight is multiplied as: 1, or 2, which leaves it 16 (bf16) or 22 (f16) bits
  bool columns = false;       ///< e4m3: values are in columns (format/value_columns.hpp), weights e4m3
  bool turns = false;         ///< whether warpgroups take turns in issuing products
  bool token_scales = false;  ///< of columns

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("group", group), visit("block", block);
    visit("kv", kv), visit("out", out), visit("plain", plain);
    visit("warpgroups", warpgroups), visit("keys", keys), visit("stages", stages);
    visit("query_buffers", query_buffers), visit("overlaps", overlaps), visit("parts", parts);
    visit("columns", columns), visit("turns", turns);
    visit("token_scales", token_scales);
  }

  constexpr int rows() const { return 64 * warpgroups; }     ///< of a tile, of which a group may leave some unused
  constexpr int tokens() const { return rows() / group; }    ///< of a tile
  constexpr int heads() const { return group; }              ///< of a tile, for each of its tokens
  static constexpr int cluster = 1;                          ///< blocks that share keys
  constexpr int cluster_tokens() const { return tokens(); }  ///< of the tiles of a cluster
  constexpr int head_tiles() const { return 1; }             ///< tiles of so many heads that a group has
  constexpr int threads() const { return 128 * (warpgroups + 1); }
  /// Whether weights that may be most of a row's are added as they are multiplied, rounded: an error that both the
  /// output and the sum have is none. Two parts hardly round; in 8 bits it takes 2 %.
  constexpr bool rounds_sums() const { return parts == 1 && !columns; }
  constexpr int element_bytes() const { return columns ? 1 : 2; }
  constexpr int piece_elements() const { return 128 / element_bytes(); }
  /// Pieces of 128 bytes that a row is cut into; each piece lies with all rows of the tile.
  constexpr int pieces(int size) const { return (size + piece_elements() - 1) / piece_elements(); }
  constexpr int result_pieces() const { return (value_columns() + 63) / 64; }  ///< of 16-bit results
  /// Of a buffer, through which 16-bit results leave that 8-bit queries are too small for.
  constexpr int query_pieces() const {
    return columns && result_pieces() > pieces(head_size) ? result_pieces() : pieces(head_size);
  }
  constexpr int query_bytes() const { return rows() * 128 * query_pieces(); }
  constexpr int key_bytes() const { return keys * 128 * pieces(head_size); }
  constexpr int value_bytes() const { return columns ? keys * value_size : keys * 128 * pieces(value_size); }
  /// Of a tile: factors of its scores, and of its weights (floats), and what the latter are relative to.
  constexpr int scale_bytes() const { return token_scales ? 4 * (2 * keys + 4) : 0; }
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
  constexpr int consumer_registers() const {
    return warpgroups == 2 ? (columns ? 224 : 232) : warpgroups == 3 ? (columns ? 152 : 160) : 112;
  }
  constexpr int producer_registers() const { return columns ? 56 : warpgroups == 2 ? 40 : 32; }
  static constexpr int notes = 4;  ///< items that consumers may know of
  static constexpr int note_bytes = 64;
  constexpr int barriers() const { return 2 * query_buffers + 4 * stages + 2 * notes + 1; }
  constexpr int shared_bytes() const {
    return query_buffers * query_bytes() + stages * (key_bytes() + value_bytes() + scale_bytes()) + notes * note_bytes +
           8 * barriers();
  }
};

struct TmaPrefillParams {
  Params a;
  int32_t tiles;           ///< tiles of tokens that all sequences can make together
  float scale_log2;        ///< scale times log2(e)
  TensorMapBytes q, k, v;  ///< {a piece, heads of a group, tokens}; {a piece, rows, head, page}; v: not of columns
};

}  // namespace cermet::attention
