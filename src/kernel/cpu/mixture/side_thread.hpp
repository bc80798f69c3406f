// A second thread of control of a launch: what waits for other ranks while the launch computes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/function_ref.hpp"

namespace cermet::cpu {

/// How far one of two threads has come, for the other.
class Milestones {
 public:
  void reach(int count) { tell(count); }
  /// There will be no more.
  void give_up() { tell(gone); }
  /// Whether it has come so far; false where it gave up.
  bool await(int count) const {
    int seen = reached_.load(std::memory_order_acquire);
    for (; seen != gone && seen < count; seen = reached_.load(std::memory_order_acquire))
      reached_.wait(seen, std::memory_order_acquire);
    return seen != gone;
  }

 private:
  static constexpr int gone = -1;
  void tell(int value) {
    reached_.store(value, std::memory_order_release);
    reached_.notify_all();
  }
  std::atomic<int> reached_ = 0;
};

/// Runs one function at a time beside its owner. The thread begins with the first and ends with the owner.
class SideThread {
 public:
  SideThread() = default;
  ~SideThread();

  /// What `work` refers to must live until finish().
  void start(FunctionRef<void()> work);
  /// Returns when the work has; what it threw, or null.
  std::exception_ptr finish();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<FunctionRef<void()>> work_;
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

/// The one of this thread, which a launch uses.
SideThread& side_thread();

}  // namespace cermet::cpu
