// A group of channels of one sample, normalized: what group_norm and instance_norm repeat.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

struct ChannelGroup {
  const std::byte* x;  ///< [channels, positions], dense
  std::byte* y;        ///< alike; may be x where the types are the same
  DType x_dtype, y_dtype;
  std::int64_t first, channels, positions;  ///< first: number of the first channel in its sample
};

/// What all groups of a launch share.
struct ChannelNorm {
  TensorView weight, bias;  ///< one for each channel of a sample, where present
  float eps;
  const Launcher& after;  ///< where there is one, runs in place over what a channel has just become
};

void normalize_group(const ChannelGroup& group, const ChannelNorm& norm);

}  // namespace cermet::cpu
