// Compiles programs into the cache on disk while others are measured.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernel/cuda/task.hpp"

namespace cermet {

class CompileAhead {
 public:
  /// `threads` at a time; 0: all cores but one. `architecture` is a Target's. Where there is no cache on disk nothing
  /// is compiled ahead.
  explicit CompileAhead(std::string architecture, int threads = 0);
  ~CompileAhead();  ///< gives up what has not begun
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  /// Queues programs that were not queued before. One that does not compile fails when it is measured.
  void want(std::span<const cuda::Program> programs);
  /// Waits until none of these is being compiled, and takes those that have not begun out of the queue: the caller
  /// compiles them.
  void leave(std::span<const cuda::Program> programs);

  /// Whether anything is compiled ahead: there is a cache.
  bool works() const { return !workers_.empty(); }
  /// Whether all of these were tried, or left to a caller.
  bool is_done(std::span<const cuda::Program> programs);
  /// Waits until another program is done, or some seconds have passed.
  void wait_for_progress(double seconds);

 private:
  void work();

  std::string architecture_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<cuda::Program> queue_;
  std::set<cuda::Program> known_, compiling_, done_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace cermet
