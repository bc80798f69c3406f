// The generated sources: a thin function around a task, and the dispatcher of several linked tasks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernel/cuda/task.hpp"

namespace cermet::jit {

/// The function that every image has.
inline constexpr const char* entry_name = "cermet_task";

/// A program as a source of its own: extern "C" __global__ void cermet_task(Params, unsigned items), which loops over the items of its block.
std::string wrapper_source(const cuda::Program& program);

/// A program's task as `extern "C" __device__ void NAME(const void* params, unsigned item, char* smem)`, for linking.
std::string linked_task_source(const cuda::Program& program, const std::string& name);

}  // namespace cermet::jit
