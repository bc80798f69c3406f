// Configuration and parameters of the unique tasks.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::unique {

inline constexpr int threads = 256;

struct Config {
  DType type = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type);
  }
};

struct Params {
  const void* x;
  void* y;
  int64_t *indices, *inverse, *counts, *count;
  uint32_t* order;   ///< [padded]: numbers of slices, sorted
  uint32_t* head;    ///< [slices + 1]: place in the order where each group begins
  uint32_t* number;  ///< [slices]: of each group, in the order of its result
  uint32_t* leads;   ///< [slices]: 1 + the group that a slice leads, or 0
  int64_t slices, padded;
  uint32_t sorted;
  uint32_t size, step;     ///< of a pass of the sort
  int64_t x_step, y_step;  ///< from slice to slice; 0 where slices are elements, which x_elements places
  Axes<2> slice;           ///< of a slice: strides of x and y
  Axes<1> x_elements;      ///< of x
};

}  // namespace cermet::unique
