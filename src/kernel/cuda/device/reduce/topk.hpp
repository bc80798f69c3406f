// Configuration and parameters of the topk task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::topk {

/// Elements that are chosen by a cut and then sorted in shared memory, at most; more are chosen one after the other.
inline constexpr int most_sorted = 2048;

struct Config {
  DType type = {};
  int k = 0, sorted = 0;  ///< sorted: a power of two, at least k; 0 where k is too large for it
  bool largest = false;
  int threads = 0;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("k", k), visit("sorted", sorted), visit("largest", largest), visit("threads", threads);
  }
};

struct Params {
  const void* x;
  void* values;
  void* ids;
  int64_t length;
  uint32_t wide_ids;
  Axes<3> rows;  ///< strides of the rows of x, values and ids
};

}  // namespace cermet::topk
