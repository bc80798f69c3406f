#include "base/thread_pool.hpp"

#include <sched.h>

#include <algorithm>

#include "base/checked.hpp"
#include "base/env.hpp"

namespace cermet {
namespace {

constexpr int spins_before_sleep = 20000;  // about 30 us: longer than the gap between two steps of a model

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = static_cast<int>(std::min(env::integer(env::Name::CERMET_THREADS), 1024L));
  if (threads <= 0) threads = usable_cores();
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::call(int thread) {
  try {
    (*body_)(thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    int spins = 0;
    while (generation_.load(std::memory_order_acquire) == seen) {
      if (++spins < spins_before_sleep) {
        pause_briefly();
        continue;
      }
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load()) return;
    call(thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(FunctionRef<void(int)> body) {
  if (workers_.empty()) return body(0);
  const std::lock_guard turn(callers_);
  body_ = &body;
  error_ = nullptr;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  call(0);
  // Workers may be descheduled on a busy machine: give the core away after a while.
  for (int spins = 0; running_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < spins_before_sleep) pause_briefly();
    else std::this_thread::yield();
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  const std::int64_t blocks = div_up(count, grain);
  const std::int64_t pieces = std::min<std::int64_t>(size(), blocks);
  if (pieces == 1) return body(0, count);
  run([&](int thread) {
    if (thread >= pieces) return;
    const std::int64_t begin = blocks * thread / pieces * grain;
    const std::int64_t end = std::min(count, blocks * (thread + 1) / pieces * grain);
    if (begin < end) body(begin, end);
  });
}

void ThreadPool::dynamic_for(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
  if (count <= 0) return;
  std::atomic<std::int64_t> next{0};
  if (count == 1 || size() == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  run([&](int) {
    for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  });
}

}  // namespace cermet
