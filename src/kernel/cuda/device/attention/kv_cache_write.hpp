// Parameters of the kv_cache_write task.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"

namespace cermet::kv_cache {

/// Keys or values, [tokens, heads, size], and where they go.
struct Stream {
  const void* from;
  int64_t token_stride, head_stride;
  Cache cache;
};

struct WriteParams {
  Stream k, v;
  const void* slots;  ///< [tokens]
  int64_t tokens, blocks;
  int32_t heads, item_tokens;  ///< item_tokens: tokens of a work item, at most most_item_tokens
  bool aligned;                ///< vectors of both caches and operands may be accessed 4 elements at a time
};

}  // namespace cermet::kv_cache
