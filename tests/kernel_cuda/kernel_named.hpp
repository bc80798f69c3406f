// A CUDA kernel by its operator and name.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "kernel/cuda/kernels.hpp"

namespace cermet {

inline const Kernel& kernel_named(OpKind op, std::string_view name) {
  for (const Kernel* kernel : cuda::kernels_of(op))
    if (kernel->name == name) return *kernel;
  fail(Status::internal, "no kernel {}", name);
}

}  // namespace cermet
