// The list of CUDA kernels.
#pragma once

#include <span>

#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// Kernels of one operator in the order in which they are tried.
std::span<const Kernel* const> kernels_of(OpKind op);
/// All of them, in the order of kernels.inc.
std::span<const Kernel* const> all_kernels();

}  // namespace cermet::cuda
