// Parameters of the tasks that measure a device's limits.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::limits {

/// A stream through memory, read by `blocks` work items together, each of which runs in a thread block of its own.
struct StreamParams {
  const void* from;  ///< 16-byte aligned
  void* to;          ///< of a copy; otherwise one word that is written when the bytes' XOR is `never`
  int64_t bytes;     ///< a multiple of what all blocks take in one step
  uint32_t blocks, never;
};

struct ProductParams {
  void* sink;  ///< one word that is written when the products' XOR is `never`
  uint32_t steps, never;
};

struct NothingParams {
  uint32_t unused;
};

}  // namespace cermet::limits
