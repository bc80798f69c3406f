// Parameters of the tasks of non_max_suppression.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::suppression {

inline constexpr int threads = 256;

struct Params {
  const void* boxes;
  const void* scores;
  int64_t* selected;
  int64_t* count;
  int64_t* kept;    ///< [lists, most]
  int64_t* counts;  ///< [lists]
  uint8_t* gone;    ///< [lists, boxes]: whether a box is out
  int64_t lists, classes, size, most;
  int64_t box_strides[2], score_strides[2], row_stride;
  double threshold, least;
  int32_t centered;
};

}  // namespace cermet::suppression
