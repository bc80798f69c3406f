// What each launch of a plan is, touches and costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/executable.hpp"
#include "runtime/limits.hpp"

namespace cermet {

struct PlannedLaunch {
  std::size_t step = 0;  ///< of Executable::steps()
  std::string
      program;  ///< "gemv/gemv", a foreign kernel's name; "fill", "vendor product"; empty for a call of the host
  bool is_program = false, is_function = false, is_linkable = false, is_fallback = false;
  std::int64_t items = 0;                                                       ///< of a program
  std::int64_t blocks = 0, threads = 0, shared_bytes = 0, parameter_bytes = 0;  ///< of a program or a function
  std::int64_t read_bytes = 0, written_bytes = 0;  ///< that may be touched: a gather's whole table
  std::int64_t early_bytes = 0;                    ///< of those read, what is fetched before others have ended: weights
  /// What the step does, and what that takes at least: of its first launch, which stands for the others.
  std::optional<Cost> work;
  std::optional<ModelledTime> time;    ///< where limits are known
  std::vector<std::uint32_t> follows;  ///< launches whose bytes it must wait for, without what follows from the rest
};

/// The launches of the last run; see Executable::plan().
std::vector<PlannedLaunch> planned_launches(Executable& executable, const DeviceLimits* limits = nullptr);

}  // namespace cermet
