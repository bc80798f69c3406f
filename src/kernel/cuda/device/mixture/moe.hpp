// Parameters of the tasks between the parts of a mixture of experts.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::moe {

inline constexpr int threads = 256;
/// Receiving ranks that a block counts at once.
inline constexpr int pass_ranks = 4096;

struct GateParams {
  float* rows;  ///< [pairs, 2 * features]: gates and what they multiply; the results replace the gates
  int64_t features;
};

struct CountParams {
  const int32_t* offsets;  ///< [experts + 1]
  const int32_t* ids;      ///< [ranks * pairs_each]: experts of every rank's tokens
  int32_t* load;           ///< [experts]
  int32_t* dispatch;       ///< [ranks, ranks]; null for a mixture in one place
  int64_t experts, ranks, pairs_each, dispatch_stride;
};

}  // namespace cermet::moe
