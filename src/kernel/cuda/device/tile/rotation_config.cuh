// Compile-time configuration of rope_and_cache behind a product.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::rotation {

/// rope_and_cache behind the product, whose columns are the heads of queries, keys and values in this order.
struct Config {
  bool given = false;
  int head_size = 0, half = 0, value_size = 0;  ///< half: pairs of a head that are rotated
  int q_heads = 0, kv_heads = 0, page = 0;      ///< page: tokens of a block of the cache
  bool neox = true;                             ///< pairs are (i, half + i), otherwise (2 i, 2 i + 1)
  DType q = DType::f32, cache = DType::f32, table = DType::f32, position = DType::i32, slot = DType::i32;
};

}  // namespace cermet::rotation
