// Tables of a plan for readers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/planned_launch.hpp"

namespace cermet {

/// A table with a row for each launch; "-" where something is not known or does not apply.
std::string plan_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps);

/// A table with a row for each pair of launches of which one follows the other: what of the earlier an item of the
/// later waits for (all, rows or tiles), how many items it needs, and how many may start when a quarter, half and three
/// quarters of the earlier have ended, in the order of their numbers. The example is the item in the middle.
std::string dependency_table(const std::vector<PlannedLaunch>& launches, std::span<const StepInfo> steps);

}  // namespace cermet
