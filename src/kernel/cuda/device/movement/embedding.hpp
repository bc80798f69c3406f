// Configuration and parameters of the embedding task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::embedding {

struct Config {
  int hidden = 0;
  DType table = {}, out = {};
  int threads = 0;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("hidden", hidden), visit("table", table), visit("out", out), visit("threads", threads);
  }
};

struct Params {
  const void* ids;
  const void* table;
  void* out;
  int64_t vocabulary, table_stride;  ///< stride in elements
  uint32_t wide_ids;
  uint32_t vectors;  ///< rows of table and result start at multiples of 16 bytes
  Axes<2> tokens;    ///< strides of ids and of the rows of the result, in elements
};

}  // namespace cermet::embedding
