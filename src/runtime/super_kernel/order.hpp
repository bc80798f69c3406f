// The order in which the items of a super-kernel are taken.
#pragma once

#include <span>
#include <vector>

#include "runtime/overlap.hpp"
#include "runtime/super_kernel/schedule.hpp"

namespace cermet {

/// Task after task; with stream_fusion, tasks of branches that do not depend on each other take turns, each in equal
/// parts. `follows`: pairs of tasks of which one waits for some of the other, which it then comes behind.
std::vector<SuperChunk> super_order(std::span<const SuperTask> tasks, std::span<const LaunchOrder> follows,
                                    const SuperKernelOptions& options);

}  // namespace cermet
