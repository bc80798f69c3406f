// Tables of a plan for readers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/planned_launch.hpp"

namespace cermet {

/// A table with a row for each launch; "-" where something is not known or does not apply.
std::string plan_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps);

}  // namespace cermet
