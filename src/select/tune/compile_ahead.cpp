#include "select/tune/compile_ahead.hpp"

#include <algorithm>
#include <chrono>

#include "base/cores.hpp"
#include "base/error.hpp"
#include "jit/jit.hpp"

namespace cermet {

CompileAhead::CompileAhead(std::string architecture, int threads) : architecture_(std::move(architecture)) {
  if (!jit::DiskCache::process().enabled()) return;
  if (threads <= 0) threads = std::max(1, usable_cores() - 1);
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

CompileAhead::~CompileAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void CompileAhead::want(std::span<const cuda::Program> programs) {
  if (workers_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (const cuda::Program& program : programs)
      if (known_.insert(program).second) queue_.push_back(program);
  }
  changed_.notify_all();
}

void CompileAhead::leave(std::span<const cuda::Program> programs) {
  std::unique_lock lock(mutex_);
  for (const cuda::Program& program : programs) {
    known_.insert(program);
    done_.insert(program);
    if (const auto found = std::ranges::find(queue_, program); found != queue_.end()) queue_.erase(found);
  }
  changed_.wait(lock, [&] {
    return std::ranges::none_of(programs, [&](const cuda::Program& program) { return compiling_.contains(program); });
  });
}

bool CompileAhead::is_done(std::span<const cuda::Program> programs) {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(programs, [&](const cuda::Program& program) { return done_.contains(program); });
}

void CompileAhead::wait_for_progress(double seconds) {
  std::unique_lock lock(mutex_);
  const std::size_t before = done_.size();
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done_.size() > before; });
}

void CompileAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const cuda::Program program = std::move(queue_.front());
    queue_.pop_front();
    compiling_.insert(program);
    lock.unlock();
    try {
      jit::build(std::span(&program, 1), architecture_, nullptr, {.threads = 1});
    } catch (const Error&) {  // compiled again when it is measured, which reports the error
    }
    lock.lock();
    compiling_.erase(program);
    done_.insert(program);
    changed_.notify_all();
  }
}

}  // namespace cermet
