// Configuration and parameters of the tasks of grid_sample and roi_align.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/image/positions.hpp"
#include "op/grid_axis.hpp"
#include "op/roi_bin.hpp"

namespace cermet::points {

inline constexpr int threads = 256;

struct Config {
  DType x = {}, points = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("x", x), visit("points", points);
  }
};

struct GridParams {
  const void* x;
  const void* grid;
  void* y;
  SpatialTensor from, to;
  PositionOrder order;                 ///< of y
  int64_t grid_batch, grid_stride[3];  ///< strides of the grid's points
  int32_t axes;
  grid::Rule rule;
};

struct RegionParams {
  const void* x;
  const void* rois;
  const void* images;
  void* y;
  SpatialTensor from, to;
  PositionOrder order;  ///< of y
  int64_t batch, roi_stride;
  int32_t wide_images;
  roi::Rule rule;
};

}  // namespace cermet::points
