// The generated sources: a thin function around a task, and the entry function of several linked ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernel/cuda/task.hpp"

namespace cermet::jit {

/// The function that every image has.
inline constexpr const char* entry_name = "cermet_task";

/// A program as a source of its own: extern "C" __global__ void cermet_task(Params, unsigned items), which loops over
/// the items of its block.
std::string wrapper_source(const cuda::Program& program);

/// A program's task for linking, in blocks of `width` threads, of which it uses as many as it has: extern "C"
/// __device__ void NAME(Work, char* smem), which loops over a block's items of one instance. The name follows from the
/// rest, so that a body is compiled once for all images that have it.
struct LinkedBody {
  std::string name, source;
};
LinkedBody linked_body(const cuda::Program& program, int width);

/// The entry function of linked tasks, which calls names[b] for a block's items of an instance of body b.
/// `shared_bytes`: of the bodies; what the function itself keeps follows them.
std::string dispatcher_source(std::span<const std::string> names, int width, std::int64_t shared_bytes);

}  // namespace cermet::jit
