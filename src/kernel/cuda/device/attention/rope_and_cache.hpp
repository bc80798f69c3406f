// Parameters of the rope_and_cache task.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"

namespace cermet::rope_and_cache {

/// Heads of the tokens, [tokens, heads, size]. Strides in elements.
struct Heads {
  const void* x;
  const void* weight;  ///< [size]; null where heads are not normalised
  int64_t token_stride, head_stride;
};

struct Params {
  Heads q, k, v;
  void* out;  ///< rotated queries
  kv_cache::Cache k_cache, v_cache;
  const void *cos, *sin, *positions, *slots;
  int64_t out_token_stride, out_head_stride, cos_stride, sin_stride, table_rows, tokens, blocks;
  float eps, weight_offset;
  int32_t item_tokens;  ///< tokens of a work item
  int32_t item_heads;   ///< heads of q, k and v (in this order) of a work item
  bool aligned;         ///< two neighbouring elements (four of v) may be accessed at a time everywhere
};

}  // namespace cermet::rope_and_cache
