// Watches ranks that are GPUs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "comm/call.hpp"

namespace cermet::comm {

/// Watches a group from a thread of its own: when a rank is gone, it says so, because the host may be waiting for the
/// device, and ends what waits there.
class Watchdog {
 public:
  /// `failure`: what went wrong on the device, "" where nothing did; `abort` ends what runs there.
  Watchdog(Communicator& host, std::function<std::string()> failure, std::function<void()> abort);
  ~Watchdog();
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  /// "rank 1 of 2: after call 17, all_reduce of ..: rank 0 is gone: ..".
  std::string reason();
  void note_call(const CallHeader& call);

 private:
  void watch();

  Communicator& host_;
  std::function<std::string()> failure_;
  std::function<void()> abort_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string reason_;
  CallHeader last_{.what = what_none};
  std::atomic<bool> failed_{false};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cermet::comm
