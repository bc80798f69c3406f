#include "comm/watchdog.hpp"

#include <chrono>

#include "base/log.hpp"

namespace cermet::comm {

Watchdog::Watchdog(Communicator& host, std::function<std::string()> failure, std::function<void()> abort)
    : host_(host), failure_(std::move(failure)), abort_(std::move(abort)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::string Watchdog::reason() {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void Watchdog::note_call(const CallHeader& call) {
  const std::lock_guard lock(mutex_);
  last_ = call;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::milliseconds(100), [&] { return stopping_; })) {
    const std::string gone = host_.failure(), stuck = gone.empty() ? failure_() : "";
    if (gone.empty() && stuck.empty()) continue;
    reason_ = gone.empty()
                  ? fmt::format("rank {} of {}: {}", host_.rank(), host_.size(), stuck)
                  : fmt::format("rank {} of {}: after {}: {}", host_.rank(), host_.size(), to_string(last_), gone);
    failed_.store(true, std::memory_order_release);
    const std::string said = reason_;
    lock.unlock();  // abort() may wait for the device
    log().error("{}", said);
    abort_();
    return;
  }
}

}  // namespace cermet::comm
