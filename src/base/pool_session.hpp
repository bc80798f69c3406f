// One parallel region of a pool in which many loops run: its threads stay, so that a loop is handed to them by a store
// into a cache line of each, without a lock, a wake-up or a line that they share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/read_ahead.hpp"
#include "base/thread_pool.hpp"

namespace cermet {

/// What a thread has not begun by then the caller does: 1 to 20 us, long after one that spins has begun; one that must
/// be woken or waits for a core has not.
inline constexpr int spins_before_claim = 400;

/// When a thread did a part of a loop; parts of others that the caller stood in for are the caller's, thread 0.
struct PartTime {
  std::int64_t tag = 0;
  int thread = 0;
  std::chrono::steady_clock::time_point begin, end;
};

class PoolSession {
 public:
  /// For the threads of a pool of this size; holding it allocates nothing.
  explicit PoolSession(int threads);
  PoolSession(const PoolSession&) = delete;
  PoolSession& operator=(const PoolSession&) = delete;

  /// Calls body() on the caller's thread; the pool's other threads wait for the loops that it runs on the pool, or on a
  /// part of it. Inside another session on the same thread it only calls body(). Rethrows what body() throws. Other
  /// threads that use the pool wait until it is over.
  void hold(ThreadPool& pool, FunctionRef<void()> body);

  /// The session that this thread holds on a pool; null where it holds none.
  static PoolSession* of(const ThreadPool& whole);
  /// ThreadPool::run on the first `threads` of its threads.
  void run(int threads, FunctionRef<void(int)> body);
  /// Loops that were run in it.
  std::int64_t loops() const { return loops_; }

  /// What loops from here on read, the next one first: threads that wait ask for it. Between loops; the list must live
  /// until it is replaced, or the session is over.
  void set_ahead(const ReadAhead* first) { ahead_.store(first, std::memory_order_release); }

  /// Notes the parts of all loops from here on, under the present tag. Between loops, as set_tag() and take_notes().
  void start_notes();
  void set_tag(std::int64_t tag) { tag_ = tag; }
  /// What was noted since, thread by thread; notes no more.
  std::vector<PartTime> take_notes();

 private:
  /// A thread's line: the number of its last loop above what has become of it.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> state{0};
    const FunctionRef<void(int)>* body = nullptr;
    bool is_absent =
        false;  ///< the caller did its last part: it has no core, and is not waited for until it comes back
    std::vector<PartTime> notes;  ///< of what this thread did
  };

  void follow(int thread);
  void call(int thread, int part, const FunctionRef<void(int)>& body);
  void finish(int thread, std::uint64_t number);
  void close();

  const ThreadPool* pool_ = nullptr;  ///< the whole one, while held
  int threads_ = 1;
  int following_ = 1;  ///< threads of the pool that is held
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<const ReadAhead*> ahead_{nullptr};
  AheadReader reader_{0, 1};  ///< of the caller
  std::uint64_t number_ = 0;
  std::int64_t loops_ = 0, tag_ = 0;
  bool notes_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace cermet
