// Why a kernel is passed over: what selection asks, and kernels that choose others for their parts.
#pragma once

#include "base/env.hpp"
#include "kernel/kernel.hpp"

namespace cermet {

/// Whether CERMET_DISABLE_KERNELS names the kernel.
inline bool is_disabled(std::string_view kernel) {
  const std::string list = "," + env::value(env::Name::CERMET_DISABLE_KERNELS) + ",";
  return list.find(fmt::format(",{},", kernel)) != std::string::npos;
}

/// Nothing when the kernel takes the region and is not switched off.
inline Decline decline_of(const Kernel& kernel, const Region& region) {
  if (is_disabled(kernel.name)) return "switched off by CERMET_DISABLE_KERNELS";
  if (!region.is_single() && !kernel.fuses) return fmt::format("computes {} alone", region.problem().op->name);
  return kernel.declines(region);
}

}  // namespace cermet
