// Compile-time configuration of the tasks that choose experts.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::gating {

struct Config {
  DType logits = DType::f32, bias = DType::f32;
  int experts = 1, k = 1, groups = 1, topk_groups = 1;
  bool softmax = true, renormalize = false, top2 = false, has_bias = false;
  int threads = 32;
};

}  // namespace cermet::gating
