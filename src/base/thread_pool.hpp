// Workers for parallel regions that last microseconds: they spin briefly between regions, then sleep.
// A pool never has more of them than there are cores: on a core that several share, each would spin while another has
// work to do. Our own code rather than a library: the OpenMP and TBB runtimes are opaque to ThreadSanitizer, and a
// region here must allocate nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.hpp"

namespace cermet {

class ThreadPool {
 public:
  /// `threads` counts the caller; 1 runs everything on the caller's thread. 0 means one for each core this process may
  /// use. Of more threads than `cores`, or usable_cores() where that is 0, those that have a core do the work of all,
  /// which is warned of once.
  explicit ThreadPool(int threads = 0, int cores = 0);
  /// The first `threads` threads of another pool, or all where it has fewer; the others stay idle. Costs nothing to
  /// make; `whole` must outlive it.
  ThreadPool(ThreadPool& whole, int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return few_; }
  /// How many of its threads run at the same time.
  int at_once() const { return std::min(few_, static_cast<int>((whole_ ? whole_ : this)->workers_.size()) + 1); }
  /// Calls body(thread) once for every thread in [0, size()) and returns when all are done. The first exception is
  /// rethrown. Not reentrant: a body must not start a region on the same pool. Callers from several threads take turns.
  void run(FunctionRef<void(int thread)> body);
  /// Calls body(begin, end) over [0, count) in `size()` contiguous pieces whose bounds are multiples of `grain`; small
  /// counts run inline.
  void parallel_for(std::int64_t count, std::int64_t grain,
                    FunctionRef<void(std::int64_t begin, std::int64_t end)> body);
  /// Calls body(i) for i in [0, count), handed out one by one: for items of uneven cost. Which thread runs which item
  /// varies.
  void dynamic_for(std::int64_t count, FunctionRef<void(std::int64_t item)> body);

 private:
  void work(int thread);
  void call(int thread);
  void run_on(int threads, FunctionRef<void(int)> body);

  ThreadPool* whole_ = nullptr;
  int few_ = 1;  ///< threads of the whole pool that this one has
  std::vector<std::thread> workers_;
  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  const FunctionRef<void(int)>* body_ = nullptr;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> running_{0};
  std::atomic<bool> stopping_{false};
  std::exception_ptr error_;
};

}  // namespace cermet
