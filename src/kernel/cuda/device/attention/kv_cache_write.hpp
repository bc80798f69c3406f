// Configuration and parameters of the kv_cache_write task.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"
#include "kernel/cuda/device/dtype.hpp"

namespace cermet::kv_cache {

struct WriteConfig {
  int key_size, value_size, block;  ///< block: tokens of a page
  DType from, to, slot;
  Scales scales;
  int threads;
  bool columns;  ///< values go to columns

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("key_size", key_size), visit("value_size", value_size), visit("block", block), visit("from", from);
    visit("to", to), visit("slot", slot), visit("scales", scales), visit("threads", threads);
    visit("columns", columns);
  }
};

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
