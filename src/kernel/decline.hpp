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

/// Whether a single operator's operands are the region's in the same order, as a launch of it expects them.
inline bool has_own_operands(const Region& region) {
  for (std::size_t i = 0; i < region.problem().inputs.size(); ++i)
    if (region.operand_of(i).value_or(i) != i) return false;
  return true;
}

/// Nothing when the kernel takes the region and is not switched off.
inline Decline decline_of(const Kernel& kernel, const Region& region) {
  if (is_disabled(kernel.name)) return "switched off by CERMET_DISABLE_KERNELS";
  if (!region.is_single() && !kernel.fuses) return fmt::format("computes {} alone", region.problem().op->name);
  if (!kernel.fuses && !has_own_operands(region)) return "expects every operand once, in its place";
  return kernel.declines(region);
}

}  // namespace cermet
