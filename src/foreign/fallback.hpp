// One of our own kernels, for launches whose operands' strides or addresses a kernel from outside does not take.
#pragma once

#include "foreign/manifest.hpp"
#include "kernel/kernel.hpp"

namespace cermet::foreign {

struct Fallback {
  const Kernel* kernel = nullptr;
};

/// The first that takes the region, in its own way, and needs no operand packed; none where the manifest takes any
/// operand, or where no kernel does.
Fallback find_fallback(const Manifest& manifest, const Region& region);

}  // namespace cermet::foreign
