// How many cores this process may use.
#pragma once

#include <filesystem>
#include <optional>

namespace cermet {

/// The cores that this thread may run on (taskset, mpirun), or as many as the processor time that its control group may
/// take (`docker --cpus`), whichever is less; at least 1. Threads beyond it only take turns.
int usable_cores();

/// Whole cores of the processor time that the control groups of this process allow, rounded down and at least 1;
/// nothing where they set no limit. Reads cgroup v2's cpu.max and v1's cpu.cfs_quota_us of its group and those above
/// it, from the files below `root`.
std::optional<int> quota_cores(const std::filesystem::path& root = "/");

}  // namespace cermet
