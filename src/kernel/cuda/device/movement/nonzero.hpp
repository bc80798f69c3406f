// Parameters of the nonzero tasks.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::nonzero {

inline constexpr int threads = 256, rounds = 8;
inline constexpr int64_t chunk = threads * rounds;  ///< elements of a work item

struct Params {
  const void* x;
  int64_t* coordinates;
  int64_t* count;
  int64_t* before;  ///< of each chunk: what it has, then what the chunks before it have; after them the sum
  uint64_t mask;    ///< the bits of an element that make it differ from zero: all but the sign of a floating one
  int64_t stride;   ///< between rows of coordinates
  int64_t chunks;
  uint32_t element_bytes;
  int32_t rank;
  Axes<1> axes;  ///< of x, none merged
};

}  // namespace cermet::nonzero
