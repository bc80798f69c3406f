// rope_and_cache after a product: configuration and operands, host and device.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"

namespace cermet {
enum class DType : uint8_t;  // base/dtype.hpp on the host, types.cuh on the device
}

namespace cermet::rotation {

/// The product's columns are the heads of queries, keys and values in this order.
struct Config {
  bool given = false;
  int head_size = 0, half = 0, value_size = 0;  ///< half: pairs of a head that are rotated
  int q_heads = 0, kv_heads = 0, page = 0;      ///< page: tokens of a block of the cache
  bool neox = true;                             ///< pairs are (i, half + i), otherwise (2 i, 2 i + 1)
  DType q = {}, cache = {}, table = {}, position = {}, slot = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("given", given), visit("head_size", head_size), visit("half", half), visit("value_size", value_size);
    visit("q_heads", q_heads), visit("kv_heads", kv_heads), visit("page", page), visit("neox", neox), visit("q", q);
    visit("cache", cache), visit("table", table), visit("position", position), visit("slot", slot);
  }
};

/// What a rotation reads and writes beside the product's own operands. Strides in elements.
struct Operands {
  const void *cos, *sin;          ///< [table_rows, pairs of a head that are rotated]
  const void *positions, *slots;  ///< [rows]
  kv_cache::Cache k_cache, v_cache;
  int64_t q_head_stride, cos_stride, sin_stride, table_rows, pages;
};

/// Parameters P of a product, whose y are the rotated queries [rows, heads, head size].
template <class P>
struct WithOperands : P, Operands {};

}  // namespace cermet::rotation
