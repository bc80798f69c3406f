// Several tasks in one kernel: each compiled alone to LTO-IR, then linked under a generated dispatcher, which inlines
// them. Relocatable cubins would not work: a separately assembled body has its own register allocation, and wgmma and
// setmaxnreg do not survive the call.
#pragma once

#include "jit/jit.hpp"
#include "kernel/cuda/device/linked.hpp"

namespace cermet::jit {

/// Tasks behind one entry function: (linked::Params, uint32). Its blocks are as wide as the widest task; narrower ones
/// run in the first threads. A table lists instances, each a body with parameters, items and thread blocks of its own.
struct LinkedImage {
  Image image;                        ///< its function is `entry_name`
  std::vector<std::uint32_t> bodies;  ///< of each program: equal ones are linked once
  std::int64_t shared_bytes = 0;
  int threads = 0;
};

/// Whether tasks are linked for a device: one that runs native code, of compute capability 9.0 at most.
inline bool can_link(const Target& target) { return target.compute_capability <= 90; }

/// Links programs for a device that runs native code (compute capability 9.0 at most). Throws Error where one is not
/// linkable (device/plan.hpp) or they need more shared memory than a thread block of the device has, and as `build`
/// does.
LinkedImage link_tasks(std::span<const cuda::Program> programs, const Target& target, Report* report = nullptr,
                       const Options& options = {});

/// A use of a body in a linked launch: `items` work items over `blocks` thread blocks.
struct LinkedInstance {
  std::uint32_t body = 0, items = 0, blocks = 0;
  std::span<const std::byte> parameters;  ///< Task::Params
  std::vector<linked::Need> needs =
      {};  ///< of earlier instances: how many of their items must have ended before one of these computes
};

/// What a linked launch reads, to be copied to device memory at a multiple of linked::params_alignment, and its thread
/// blocks.
struct LinkedTable {
  std::vector<std::byte> bytes;
  std::uint32_t blocks = 0;
};
LinkedTable linked_table(std::span<const LinkedInstance> instances);

}  // namespace cermet::jit
