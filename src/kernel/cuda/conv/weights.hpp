// Weights of convolutions as CUDA kernels read them.
#pragma once

#include "kernel/cuda/device/conv/general.hpp"
#include "kernel/kernel.hpp"
#include "op/conv.hpp"

namespace cermet::cuda {

/// [M, C, k..] as rows [M][k..][C], each padded with zeros to a multiple of 8 elements.
extern const WeightLayout conv_rows;
/// [M, 1, k..] as [k..][M], M padded with zeros to a multiple of 8.
extern const WeightLayout conv_taps;

/// Elements of a row of conv_rows, and of conv_taps.
std::int64_t conv_row_elements(const Shape& weight);
std::int64_t conv_tap_elements(const Shape& weight);
/// Where elements are in them, for the general convolution.
conv::WeightSteps conv_row_steps(const Shape& weight);
conv::WeightSteps conv_tap_steps(const Shape& weight);

}  // namespace cermet::cuda
