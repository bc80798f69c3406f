// What an executable runs, as text: every launch with its kernel, or the launches of each kernel together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/executable.hpp"

namespace cermet {

/// The launches of one kernel with one weight layout.
struct KernelUse {
  std::string kernel, op, layout;
  std::int64_t launches = 0;  ///< in one run
  std::int64_t runs = 0;      ///< timed launches, as the three below
  double seconds = 0;
  Cost work;
};

/// Kernels in falling order of time, then of launches.
std::vector<KernelUse> kernels_used(std::span<const StepInfo> steps);

/// A table with a row for each kernel: launches, time and share of it, achieved GB/s and GFLOP/s (GOP/s of integers).
/// Columns of times are left out where nothing was timed.
std::string kernel_table(std::span<const KernelUse> kernels);

/// A table with a row for each launch: scope, operator with its operands' types, kernel, weight layout, and what the
/// timed runs took; without them, the bytes and operations at the symbols' maximum.
std::string explain(std::span<const StepInfo> steps);

}  // namespace cermet
