// The generated source around a task.
#pragma once

#include <string>

#include "kernel/cuda/task.hpp"

namespace cermet::jit {

/// The function that every image has.
inline constexpr const char* entry_name = "cermet_task";

/// A program as a source of its own: extern "C" __global__ void cermet_task(Params, unsigned items), which loops over
/// the items of its block.
std::string wrapper_source(const cuda::Program& program);

}  // namespace cermet::jit
