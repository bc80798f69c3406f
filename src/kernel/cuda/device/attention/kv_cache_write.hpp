// Parameters of the kv_cache_write task.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::kv_cache {

/// Keys or values, and where they go. Strides in elements.
struct Stream {
  const void* from;  ///< [tokens, heads, size]
  void* cache;
  float* scale;  ///< given per head, or filled per token; null for none
  int64_t token_stride, head_stride, page_stride, row_stride, cache_head_stride;
  int64_t scale_page_stride, scale_row_stride, scale_head_stride;
};

struct Params {
  Stream k, v;
  const void* slots;  ///< [tokens]
  int64_t tokens, blocks;
  int32_t heads, item_tokens;  ///< tokens of a work item, at most most_item_tokens
  bool aligned;                ///< vectors of both caches and operands may be accessed 4 elements at a time
};

inline constexpr int most_item_tokens = 32;

}  // namespace cermet::kv_cache
