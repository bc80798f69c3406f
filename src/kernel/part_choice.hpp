// Kernels that choose others for their parts.
#pragma once

#include <span>

#include "kernel/kernel.hpp"

namespace cermet {

/// The kernel of an operator inside another kernel, and how it runs; null where every one declines.
struct PartChoice {
  const Kernel* kernel = nullptr;
  Config config = {};
};
/// The first that takes the region, in its own way; where forced_configs() names one that takes it, that one, in the
/// first configuration that it may.
PartChoice choose_part(std::span<const Kernel* const> kernels, const Region& region);

}  // namespace cermet
