// Where a row of coordinates points.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/coordinates.hpp"

namespace cermet {

/// Offset of the slice that the row of coordinates at `at` picks, and its place among all slices in row-major order;
/// false where a coordinate is out of range.
CERMET_DEVICE bool find_slice(const Coordinates& c, int64_t at, int64_t& offset, int64_t& place) {
  offset = place = 0;
  for (int32_t j = 0; j < c.count; ++j) {
    int64_t index = load_index(c.indices, c.wide, at + j);
    if (index < 0) index += c.size[j];
    if (index < 0 || index >= c.size[j]) return false;
    offset += index * c.stride[j];
    place = place * c.size[j] + index;
  }
  return true;
}

}  // namespace cermet
