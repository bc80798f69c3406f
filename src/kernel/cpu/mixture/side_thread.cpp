#include "kernel/cpu/mixture/side_thread.hpp"

#include <utility>

namespace cermet::cpu {

SideThread::~SideThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SideThread::start(FunctionRef<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = work;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  changed_.notify_all();
}

std::exception_ptr SideThread::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !work_; });
  return std::exchange(error_, nullptr);
}

void SideThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return work_ || ends_; });
    if (!work_) return;
    const FunctionRef<void()> work = *work_;
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = std::exchange(error, nullptr);
    work_.reset();
    changed_.notify_all();
  }
}

SideThread& side_thread() {
  static thread_local SideThread thread;
  return thread;
}

}  // namespace cermet::cpu
