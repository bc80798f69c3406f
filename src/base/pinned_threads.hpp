// Keeps the threads of a pool on cores of their own while something is timed.
#pragma once

#include <sched.h>

#include <vector>

#include "base/thread_pool.hpp"

namespace cermet {

/// Thread i of the pool stays on the i-th core that this process may use, until the object goes; then each may run
/// where it might before. Nothing happens where there are fewer cores than threads, or where the system refuses.
class PinnedThreads {
 public:
  explicit PinnedThreads(ThreadPool& pool);
  ~PinnedThreads();
  PinnedThreads(const PinnedThreads&) = delete;
  PinnedThreads& operator=(const PinnedThreads&) = delete;

 private:
  struct Pinned {
    pid_t thread = 0;  ///< 0: not pinned
    cpu_set_t cores;   ///< where it might run
  };
  std::vector<Pinned> pinned_;
};

}  // namespace cermet
