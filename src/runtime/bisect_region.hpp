// Which launch of a super-kernel is the first whose results differ from those of launches one by one.
#pragma once

#include <optional>
#include <string>

#include "base/function_ref.hpp"
#include "runtime/executable.hpp"

namespace cermet {

struct RegionFault {
  std::string super_kernel, scope, kernel;
  std::size_t launch = 0, result = 0, element = 0;  ///< of the plan; of the launch's step; of the result
  std::size_t differing = 0, elements = 0;          ///< of the result
  double expected = 0, found = 0;
};

struct RegionBisectReport {
  std::size_t regions = 0, launches = 0;  ///< of the last run, and in regions
  std::size_t runs = 0;
  std::optional<RegionFault> fault;  ///< nothing where every result has the same bits
};

/// What to run again and again. prepare() brings the executable's inputs and states to where they were before its last run, and run() repeats that run.
struct RepeatedRun {
  FunctionRef<void()> prepare, run;
};

/// Cuts the last run behind each launch of its regions in turn, once with launches one by one and `repeat` times with regions as they are, and compares the
/// last launch's results bit by bit: memory is used again as in a whole run. Selections are as before when it returns or throws; `fault` goes into those with
/// regions (LaunchSelection::too_early). Throws Error where the last run has no region.
RegionBisectReport bisect_region(Executable& executable, const RepeatedRun& repeated, int repeat = 1, std::size_t fault = LaunchSelection::all);

}  // namespace cermet
