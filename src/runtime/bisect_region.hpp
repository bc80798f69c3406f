// Which launch of a super-kernel is the first whose results differ from those of launches one by one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

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

/// What to run again and again. prepare() brings the executable's inputs and states to where they were before its last
/// run, and run() repeats that run.
struct RepeatedRun {
  FunctionRef<void()> prepare, run;
};

/// What the launch before a cut left.
struct RegionResults {
  std::string_view super_kernel, scope, kernel;
  std::size_t launch = 0;  ///< of the plan
  const std::vector<OwnedTensor>&expected,
      &found;  ///< one by one; in a region, the last time, which is the first that differs
  bool same = true;
};

struct RegionBisectOptions {
  int repeat = 1;     ///< runs with regions after every cut
  bool ends = false;  ///< cuts after the last launch of each region alone: a GPU links each once then
  std::function<void(const RegionResults&)> keep = {};  ///< called after every cut
  std::size_t fault = LaunchSelection::all;             ///< of the runs with regions: LaunchSelection::too_early
};

/// Cuts the last run after each launch of its regions in turn, once with launches one by one and then with regions as
/// they are, and compares the last launch's results bit by bit: memory is used again as in a whole run. Selections are
/// as before when it returns or throws. Throws Error where the last run has no region.
RegionBisectReport bisect_region(Executable& executable, const RepeatedRun& repeated,
                                 const RegionBisectOptions& options = {});

}  // namespace cermet
