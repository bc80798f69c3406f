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

/// Nothing when the kernel takes the problem and nobody switched it off.
inline Decline decline_of(const Kernel& kernel, const Problem& problem) {
  if (is_disabled(kernel.name)) return "switched off by CERMET_DISABLE_KERNELS";
  if (problem.prologue && !kernel.takes_prologue) return "computes no prologue";
  if (problem.prologue && !kernel.takes_prologue(*problem.prologue)) return fmt::format("does not compute {} on the way", problem.prologue->op->name);
  if (!problem.prologue && kernel.takes_prologue) return "expects a prologue";
  return kernel.declines(problem);
}

}  // namespace cermet
