// Kernels from outside and their checks as JSON: what the command line and the C interface give.
#pragma once

#include "io/json_value.hpp"
#include "runtime/kernel_check.hpp"

namespace cermet {

/// kernel, operator, unchecked (why nothing could run it, or null), and where it was checked device, taken, declined,
/// runs.
JsonValue check_json(const AddedKernel& added);
/// folders, and kernels with all that is known of them.
JsonValue kernels_json();

}  // namespace cermet
