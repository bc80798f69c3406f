// Values that kernels keep one after the other in a workspace.
#pragma once

#include "base/checked.hpp"
#include "base/tensor.hpp"

namespace cermet {

/// Without memory views have no data, and the bytes are what a workspace must have.
struct WorkspaceLayout {
  std::byte* memory = nullptr;
  std::int64_t alignment = 64;  ///< bytes
  std::int64_t bytes = 0;       ///< of all views so far

  TensorView place(DType dtype, const Shape& shape) {
    const TensorView view(memory ? memory + bytes : nullptr, dtype, shape);
    bytes += round_up(shape.elements() * byte_size(dtype), alignment);
    return view;
  }
};

}  // namespace cermet
