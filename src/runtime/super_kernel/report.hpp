// Super-kernels for readers.
#pragma once

#include <string>

#include "runtime/executable.hpp"
#include "runtime/super_kernel/super_region.hpp"

namespace cermet {

/// A table of the regions of the last run, what their launches wait for, and what could not join; empty where no node
/// is marked. See Executable::plan().
std::string super_kernel_text(Executable& executable);

}  // namespace cermet
