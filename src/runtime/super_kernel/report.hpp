// Super-kernels for readers.
#pragma once

#include <string>

#include "device/dependency.hpp"
#include "runtime/executable.hpp"
#include "runtime/super_kernel/schedule.hpp"
#include "runtime/super_kernel/super_region.hpp"

namespace cermet {

/// A table of the regions of the last run, what their items raise and wait for, and what could not join; empty where no
/// node is marked. See Executable::plan().
std::string super_kernel_text(Executable& executable);

/// How finely others wait for a task: nothing, all, rows or tiles.
WaitsFor raised_by(const SuperTask& task);

}  // namespace cermet
