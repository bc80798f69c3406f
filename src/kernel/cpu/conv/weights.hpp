// Weights of convolutions as kernels read them.
#pragma once

#include "base/tensor.hpp"
#include "base/thread_pool.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// A weight [M, C, k..] of any real type as float32 panels of 32 output channels, [M/32][taps][C][32]; M is padded with zeros.
extern const WeightLayout conv_panels;
/// A weight [M, 1, k..] of any real type as float32 [taps][M], M padded with zeros to a multiple of 32.
extern const WeightLayout conv_channels;
/// A weight [C, M, k..] of any real type as float32 panels of 32 output channels, [M/32][taps][C][32]; M is padded with zeros.
extern const WeightLayout transposed_panels;

}  // namespace cermet::cpu
