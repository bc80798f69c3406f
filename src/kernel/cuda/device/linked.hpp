// What a linked launch reads to know its work: written by the host, in device memory.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::linked {

/// Parameters lie at multiples of this in the table; what a tensor map needs.
inline constexpr int64_t params_alignment = 64;

/// Shared memory that the dispatcher keeps for itself behind the bodies'.
inline constexpr int64_t work_bytes = 64;

/// Items of an earlier instance that must have ended before an item starts to compute.
struct Need {
  uint32_t instance;
  uint32_t items;  ///< how many of it, whichever
};

/// One use of a body. The thread blocks of all instances are numbered on, in the order of the instances.
struct Instance {
  uint32_t body, items;
  uint32_t first_block, blocks;
  uint32_t first_need, needs;  ///< in the list of all needs
  uint32_t announces;          ///< others need it, so that its counter counts
  uint64_t params;             ///< where they are, in bytes from the table's start
};

/// Parameters of a linked launch. The table: [instances] Instance, all needs, the instances' parameters.
struct Params {
  const char* table;
  uint32_t*
      counters;  ///< [instances + 1]: items that have ended, then blocks that have started; zeros before the launch
  uint32_t instances;
};

}  // namespace cermet::linked
