// Configuration and parameters of the tasks that choose experts: host and device.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {
enum class DType : uint8_t;  // base/dtype.hpp on the host, types.cuh on the device
}

namespace cermet::gating {

struct Config {
  DType logits = {}, bias = {}, ids = {};
  int experts = 1, k = 1, groups = 1, topk_groups = 1;
  bool softmax = true, renormalize = false, top2 = false, has_bias = false;
  int threads = 32;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("logits", logits), visit("bias", bias), visit("ids", ids), visit("experts", experts), visit("k", k);
    visit("groups", groups), visit("topk_groups", topk_groups), visit("softmax", softmax);
    visit("renormalize", renormalize), visit("top2", top2), visit("has_bias", has_bias), visit("threads", threads);
  }
};

struct Params {
  const void* logits;
  const void* bias;  ///< null: none
  float* weights;
  void* ids;  ///< null: not wanted
  int64_t tokens;
  int64_t logits_stride, weights_stride, ids_stride;  ///< of rows, in elements
  float scale;
  uint32_t vectors;  ///< rows of logits start at multiples of 16 bytes
};

/// Most experts of the task with a warp for each token; most groups of the one with a block.
inline constexpr int warp_experts = 1024, block_groups = 4096;

}  // namespace cermet::gating
