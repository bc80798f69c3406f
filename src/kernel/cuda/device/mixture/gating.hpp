// Parameters of the tasks that choose experts.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::gating {

struct Params {
  const void* logits;
  const void* bias;  ///< null: none
  float* weights;
  int32_t* ids;  ///< null: not wanted
  int64_t tokens;
  int64_t logits_stride, weights_stride, ids_stride;  ///< of rows, in elements
  float scale;
  uint32_t vectors;  ///< rows of logits start at multiples of 16 bytes
};

/// Most experts of the task with a warp for each token; most groups of the one with a block.
inline constexpr int warp_experts = 1024, block_groups = 4096;

}  // namespace cermet::gating
