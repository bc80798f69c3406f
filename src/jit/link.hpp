// Several tasks in one kernel: each compiled alone to LTO-IR, then linked under a generated dispatcher, which inlines them. Relocatable cubins would not
// work: a separately assembled body has its own register allocation, and wgmma and setmaxnreg do not survive the call.
#pragma once

#include "jit/jit.hpp"

namespace cermet::jit {

/// One of the tasks of a linked image.
struct LinkedTask {
  cuda::Program program;
  std::int64_t params_bytes = 0;  ///< sizeof(Task::Params)
};

/// Tasks behind one entry function, launched as any program: (params, uint32 items). Its parameters are one block of params_bytes: the uint32
/// numbers [tasks + 1] of each task's first item, the last of which is the number of items of all, then each task's own parameters at its offset.
/// Tasks of one launch must not depend on each other: their items run in any order.
struct LinkedImage {
  Image image;                               ///< its function is `entry_name`
  std::vector<std::int64_t> params_offsets;  ///< [tasks]
  std::int64_t params_bytes = 0;
  std::int64_t shared_bytes = 0;  ///< the largest of the tasks'
  int threads = 0, cluster = 1;
};

/// Links tasks of equal block and cluster size. Needs a native architecture ("sm_90a"). Throws as `build` does.
LinkedImage link_tasks(std::span<const LinkedTask> tasks, const std::string& architecture, Report* report = nullptr, const Options& options = {});

}  // namespace cermet::jit
