// Configuration and parameters of the rope_and_cache task, and how heads lie over threads.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"
#include "kernel/cuda/device/dtype.hpp"

namespace cermet::rope_and_cache {

using kv_cache::Scales;

struct Config {
  int head_size, half, value_size, q_heads, kv_heads, block;  ///< half: pairs that are rotated; block: tokens of a page
  DType x, out, cache, table, q_weight, k_weight, position, slot;
  bool neox;
  Scales scales;
  int threads;
  bool aligned;  ///< everything may be accessed in vectors of `rope_width` and `value_width` elements, or in pieces of
                 ///< 16 bytes
  bool columns;  ///< values go to columns

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("half", half), visit("value_size", value_size), visit("q_heads", q_heads);
    visit("kv_heads", kv_heads), visit("block", block), visit("x", x), visit("out", out);
    visit("cache", cache), visit("table", table), visit("q_weight", q_weight), visit("k_weight", k_weight);
    visit("position", position), visit("slot", slot), visit("neox", neox), visit("scales", scales);
    visit("threads", threads), visit("aligned", aligned);
    visit("columns", columns);
  }
};

/// Heads of the tokens, [tokens, heads, size]. Strides in elements.
struct Heads {
  const void* x;
  const void* weight;  ///< [size]; null where heads are not normalized
  int64_t token_stride, head_stride;
};

struct Params {
  Heads q, k, v;
  void* out;  ///< rotated queries
  kv_cache::Cache k_cache, v_cache;
  const void *cos, *sin, *positions, *slots;
  int64_t out_token_stride, out_head_stride, cos_stride, sin_stride, table_rows, tokens, blocks;
  float eps, weight_offset;
  uint32_t cache_items, item_tokens;  ///< items that write to the cache, and tokens of each
};

/// Pairs that a lane rotates where addresses allow: 16 bytes of an operand of this element size in one access.
constexpr int rope_width(int64_t half, int element_bytes, bool neox) {
  int width = 16 / element_bytes / (neox ? 1 : 2);
  while (width > 1 && half % width != 0) width /= 2;
  return width;
}
/// Elements of a value that a lane copies at a time.
constexpr int value_width(int64_t size, int element_bytes) {
  int width = 16 / element_bytes;
  while (width > 1 && size % width != 0) width /= 2;
  return width;
}
/// Lanes that share a head: a power of two.
constexpr int head_lanes(int64_t half, int width) {
  int lanes = 4;
  while (lanes < 32 && lanes * width < half) lanes *= 2;
  return lanes;
}

}  // namespace cermet::rope_and_cache
