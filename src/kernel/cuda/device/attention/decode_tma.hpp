// Decoding attention with a warp that copies whole pages: what its two halves agree on.
#pragma once

#include "kernel/cuda/device/attention/decode_config.hpp"
#include "kernel/cuda/device/tensor_map.hpp"

namespace cermet::attention {

struct TmaDecodeConfig {
  int head_size, value_size, kv_heads, group, block;  ///< a row of the cache has 128, 256 or 512 bytes; block: tokens
                                                      ///< of a page, a multiple of `keys`
  DType q, kv, out;
  int element_bytes;  ///< of the cache
  bool plain;         ///< neither softcap nor alibi
  bool token_scales;  ///< of quantized keys and values, both; then pages are heads first
  int weight_parts;   ///< 16-bit numbers that a weight is multiplied as; of 8 rows always two
  int rows;           ///< of a warp: 8 or 16
  int heads;          ///< key-value heads of a block at a time; they divide kv_heads
  int row_tiles;      ///< warps with different rows of a head
  int parts;          ///< warps with the same rows and different tiles of keys
  int stages;         ///< a multiple of `parts`
  bool early;         ///< prefetches its first pages into the L2 while earlier launches run
  bool joins;         ///< the block in which a span begins adds up its parts where they are complete before its own
  bool heads_first;   ///< pages are [kv_heads, block, D], otherwise [block, kv_heads, D]

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("value_size", value_size), visit("kv_heads", kv_heads), visit("group", group),
        visit("block", block), visit("q", q), visit("kv", kv), visit("out", out), visit("element_bytes", element_bytes),
        visit("plain", plain), visit("token_scales", token_scales), visit("weight_parts", weight_parts),
        visit("rows", rows), visit("heads", heads), visit("row_tiles", row_tiles), visit("parts", parts),
        visit("stages", stages), visit("early", early), visit("joins", joins), visit("heads_first", heads_first);
  }

  static constexpr int keys = 16;  ///< of a tile, which is a unit of work, too
  /// Of a warp's products.
  constexpr DecodeConfig warp() const {
    DecodeConfig c{};
    c.head_size = head_size, c.value_size = value_size, c.kv_heads = kv_heads, c.group = group, c.block = block;
    c.q = q, c.kv = kv, c.out = out, c.plain = plain, c.token_scales = token_scales, c.weight_parts = weight_parts;
    c.rows = rows, c.tile_keys = keys, c.warps = 1, c.stages = stages;
    return c;
  }
  constexpr int head_rows() const { return row_tiles * rows; }      ///< of a head, in a block
  constexpr int block_rows() const { return heads * head_rows(); }  ///< of a partial
  constexpr int writers() const { return heads * row_tiles; }       ///< warps with different rows
  constexpr int consumers() const { return writers() * parts; }
  constexpr int threads() const { return 32 * (consumers() + 1); }
  constexpr int lines(int size) const { return size * element_bytes / 128; }     ///< of a row
  constexpr int tile_bytes(int size) const { return keys * 128 * lines(size); }  ///< of a head
  constexpr int stage_bytes() const { return heads * (tile_bytes(head_size) + tile_bytes(value_size)); }
  constexpr int scale_bytes() const { return token_scales ? 2 * heads * keys * 4 : 0; }  ///< beside a stage
  /// Floats of a lane that warps with the same rows exchange: maxima, sums and outputs.
  constexpr int exchanged() const { return rows / 8 * (2 + value_size / 4); }
  constexpr int exchange_bytes() const { return (parts - 1) * writers() * exchanged() * 128; }
  static constexpr int work_bytes = 80;  ///< what the block has of the launch's work
  /// Beside the stages: scales of each, those, for each stage whether its page is missing, and two barriers.
  constexpr int control_bytes() const {
    return stages * scale_bytes() + exchange_bytes() + work_bytes + (stages * 4 + 15) / 16 * 16 + 16 * stages;
  }
  constexpr int shared_bytes() const { return stages * stage_bytes() + control_bytes(); }
};

struct TmaDecodeParams {
  DecodeParams d;
  TensorMapBytes k, v;  ///< {a line, lines of a head, head, page}, or {a line, lines of all heads, token, page}
};

}  // namespace cermet::attention
