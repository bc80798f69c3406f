// Weights of convolutions as kernels read them.
#pragma once

#include "base/tensor.hpp"
#include "base/thread_pool.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// A weight [M, C, k..] of any real type as float32 panels of 32 output channels, [M/32][taps][C][32]; M is padded with
/// zeros.
extern const WeightLayout conv_panels;
/// Such panels of a weight [M, C, 1..] of float32 by parts of float32 (gemm/parts.hpp), [M/32][C/32][part][16][32][2]
/// of bf16.
extern const WeightLayout conv_parts_panels;
/// A weight [M, 1, k..] of any real type as float32 [taps][M], M padded with zeros to a multiple of 32.
extern const WeightLayout conv_channels;
/// A weight [M, C, 3, 3] of float32, transformed for F(4x4, 3x3), as panels of 32 output channels, [M/32][36][C][32].
extern const WeightLayout winograd_panels;
/// A weight [C, M, k..] of any real type as float32 panels of 32 output channels, [M/32][taps][C][32]; M is padded with
/// zeros.
extern const WeightLayout transposed_panels;

}  // namespace cermet::cpu
