// Tensors of the C interface for tests: memory, shape and strides in one object.
#pragma once

#include <cstdint>
#include <vector>

#include "cermet/cermet.h"

namespace cermet::test {

/// A float32 tensor that owns its memory. Members may be changed to make a tensor invalid; get() has the rest.
struct Floats {
  std::vector<float> memory;
  std::vector<std::int64_t> shape, strides;
  DLTensor dl{};

  Floats(std::vector<std::int64_t> dims, std::vector<float> values)
      : memory(std::move(values)), shape(std::move(dims)) {
    dl.data = memory.data();
    dl.device = {kDLCPU, 0};
    dl.dtype = {kDLFloat, 32, 1};
  }
  DLTensor* get() {
    dl.ndim = static_cast<int>(shape.size());
    dl.shape = shape.data();
    dl.strides = strides.empty() ? nullptr : strides.data();
    return &dl;
  }
};

}  // namespace cermet::test
