// Several tasks in one kernel: each compiled alone to LTO-IR, then linked under a generated dispatcher, which inlines them. Relocatable cubins would not
// work: a separately assembled body has its own register allocation, and wgmma and setmaxnreg do not survive the call.
#pragma once

#include "jit/jit.hpp"
#include "kernel/cuda/device/linked.hpp"

namespace cermet::jit {

/// Tasks behind one entry function: (linked::Params, uint32). Its blocks are as wide as the widest task; narrower ones run in the first threads. A block
/// works through a table of instances, each a body with parameters and items of its own. Launch at most as many blocks as are resident at once.
struct LinkedImage {
  Image image;                        ///< its function is `entry_name`
  std::vector<std::uint32_t> bodies;  ///< of each program: equal ones are linked once
  std::int64_t shared_bytes = 0;
  int threads = 0;
};

/// Links programs without clusters. Needs a native architecture ("sm_90a"). Throws as `build` does.
LinkedImage link_tasks(std::span<const cuda::Program> programs, const std::string& architecture, Report* report = nullptr, const Options& options = {});

/// A use of a body in a linked launch.
struct LinkedInstance {
  std::uint32_t body = 0, items = 0;
  std::span<const std::byte> parameters;  ///< Task::Params
  std::vector<linked::Need> needs = {};   ///< of earlier instances: how many of their items must have ended before one of these computes
};

/// The table that linked::Params names, to be copied to device memory at a multiple of linked::params_alignment.
std::vector<std::byte> linked_table(std::span<const LinkedInstance> instances);

}  // namespace cermet::jit
