// Parameters of the tasks that count tokens.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::expert_load {

inline constexpr int threads = 1024;
/// Experts that a block counts.
inline constexpr int block_experts = 4096;

struct Params {
  const void* ids;
  int32_t* counts;  ///< [experts]
  int64_t experts;
  uint32_t wide_ids;
  Axes<1> axes;  ///< of ids
};

}  // namespace cermet::expert_load
