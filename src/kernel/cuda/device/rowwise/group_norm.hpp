// Configurations and parameters of group_norm and instance_norm.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet::group_norm {

struct Config {
  RowLayout layout = {};
  DType x = {}, y = {};
  bool weights = false, biases = false;
  DType weight = {}, bias = {};
  int positions = 0;  ///< of a channel; 0: known at run time only

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("layout", layout), visit("x", x), visit("y", y), visit("weights", weights), visit("biases", biases);
    visit("weight", weight), visit("bias", bias), visit("positions", positions);
  }
};

/// Of groups that are staged in shared memory.
struct StagedConfig {
  DType x = {}, y = {};
  bool weights = false, biases = false;
  DType weight = {}, bias = {};
  int columns = 0, positions = 0;  ///< elements of a group, and of a channel
  int width = 1;                   ///< elements of a vector
  int staged = 0, held = 0;        ///< vectors of a thread in shared memory, and those after them in registers

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("x", x), visit("y", y), visit("weights", weights), visit("biases", biases), visit("weight", weight);
    visit("bias", bias), visit("columns", columns), visit("positions", positions), visit("width", width);
    visit("staged", staged), visit("held", held);
  }
};

struct Params {
  RowOperand x, y;  ///< groups of channels: [group_channels * positions]
  RowDims dims;
  uint32_t rows;       ///< groups of all samples
  int32_t length;      ///< of a row
  const void* weight;  ///< [C]
  const void* bias;    ///< [C]
  uint32_t groups, group_channels, positions;
  float eps;
};

/// Shared memory for the moments that a cluster's warps and blocks exchange, and their barrier.
CERMET_HOST_DEVICE constexpr int cluster_moments_bytes(int threads, int cluster) {
  return 16 * (threads / 32 + cluster + 1);
}

}  // namespace cermet::group_norm
