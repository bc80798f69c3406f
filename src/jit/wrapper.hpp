// The generated sources: a thin function around a task, and the dispatcher of several linked tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/cuda/task.hpp"

namespace cermet::jit {

/// The function that every image has.
inline constexpr const char* entry_name = "cermet_task";

/// A program as a source of its own: extern "C" __global__ void cermet_task(Params, unsigned items), which loops over the items of its block.
std::string wrapper_source(const cuda::Program& program);

/// A program's task for linking: extern "C" __device__ void NAME(const void* params, unsigned item, char* smem).
std::string linked_task_source(const cuda::Program& program, const std::string& name);

/// Of each task's parameters in a dispatcher's; bytes. What a tensor map needs.
inline constexpr std::int64_t params_alignment = 64;

/// Where a dispatcher's tasks find their parameters.
struct DispatcherShape {
  std::vector<std::int64_t> params_bytes, params_offsets;  ///< [tasks]
  std::int64_t total_bytes = 0;
  int threads = 0, min_blocks = 1;
};

/// The entry function of linked tasks, which calls linked_task_name(t) for the items of task t.
std::string dispatcher_source(const DispatcherShape& shape);
std::string linked_task_name(std::size_t task);

}  // namespace cermet::jit
