#include "base/thread_pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.hpp"
#include "base/cores.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "base/pool_point.hpp"
#include "base/pool_session.hpp"

namespace cermet {
namespace {

constexpr int spins_before_sleep =
    20000;  // 0.03 to 1 ms, by processor: longer than the gap between two steps of a model

/// `generation_` is the number of the region, above a bit for each worker whose call has not begun. Where cores are
/// shared with other processes a worker may get none for milliseconds, and what it has not begun the caller does.
/// Workers past the last bit are always waited for.
constexpr int number_shift = 32;
constexpr std::uint64_t call_bits = (std::uint64_t{1} << number_shift) - 1;

/// Workers that had not begun the last region that this thread ran on a pool: they have no core, and are not waited for
/// until they begin one again.
struct Absent {
  const ThreadPool* pool = nullptr;
  std::uint64_t workers = 0;  ///< as bits of a generation
};
thread_local Absent absent;

std::uint64_t number_of(std::uint64_t generation) { return generation >> number_shift; }
std::uint64_t bit_of(int worker) { return worker <= number_shift ? std::uint64_t{1} << (worker - 1) : 0; }

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Once in a process: pools come and go with engines and calls.
void warn_of_few_cores(int threads, int cores) {
  static std::once_flag once;
  std::call_once(once, [&] {
    log().warn("threads: {} were asked for, more than the {} that this process has a core for; {} do the work of all",
               threads, cores, cores);
  });
}

}  // namespace

ThreadPool::ThreadPool(int threads, int cores) {
  if (threads <= 0) threads = static_cast<int>(std::min(env::integer(env::Name::CERMET_THREADS), 1024L));
  if (cores <= 0 && threads != 1) cores = usable_cores();
  if (threads <= 0) threads = cores;
  if (threads > 1 && threads > cores) warn_of_few_cores(threads, cores);
  few_ = threads;
  for (int thread = 1; thread < std::min(threads, cores); ++thread)
    workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::ThreadPool(ThreadPool& whole, int threads)
    : whole_(whole.whole_ ? whole.whole_ : &whole), few_(std::clamp(threads, 1, whole.size())) {}

ThreadPool::~ThreadPool() {
  if (whole_) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
    generation_.store((number_of(generation_.load()) + 1) << number_shift);
    wake_.notify_all();
  }
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
  const std::uint64_t bit = bit_of(thread);
  std::uint64_t seen = 0, generation = 0;
  for (;;) {
    int spins = 0;
    while (number_of(generation = generation_.load(std::memory_order_acquire)) == seen) {
      if (++spins < spins_before_sleep) {
        pause_briefly();
        continue;
      }
      pool_point();
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return number_of(generation_.load(std::memory_order_acquire)) != seen; });
    }
    seen = number_of(generation);
    pool_point();
    if (stopping_.load()) return;
    // Fails where the caller was first, in this region or one that is over.
    while (number_of(generation) == seen && (generation & bit) &&
           !generation_.compare_exchange_weak(generation, generation & ~bit)) {
    }
    if (number_of(generation) != seen || (generation & bit) != bit) continue;
    pool_point();
    call(thread);
    pool_point();
    running_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(FunctionRef<void(int)> body) {
  ThreadPool& whole = whole_ ? *whole_ : *this;
  if (at_once() < size()) {  // those that there are do what the others would have done
    std::atomic<int> next{0};
    const auto take = [&](int) {
      for (int thread = next.fetch_add(1); thread < size(); thread = next.fetch_add(1)) body(thread);
    };
    return ThreadPool(whole, at_once()).run(take);
  }
  if (PoolSession* const session = PoolSession::of(whole)) return session->run(size(), body);
  whole.run_on(size(), body);
}

void ThreadPool::run_on(int threads, FunctionRef<void(int)> body) {
  if (threads == 1) return body(0);
  if (threads < at_once() && workers_.size() > number_shift) {  // those past the last bit are always called
    const auto first = [&](int thread) {
      if (thread < threads) body(thread);
    };
    return run_on(at_once(), first);
  }
  const std::lock_guard turn(callers_);
  body_ = &body;
  error_ = nullptr;
  const auto workers = static_cast<std::size_t>(threads - 1);
  running_.store(threads - 1, std::memory_order_relaxed);
  pool_point();
  {
    const std::lock_guard lock(mutex_);
    const std::size_t calls = std::min<std::size_t>(workers, number_shift);
    generation_.store((number_of(generation_.load(std::memory_order_relaxed)) + 1) << number_shift |
                          call_bits >> (number_shift - calls),
                      std::memory_order_release);
  }
  wake_.notify_all();
  call(0);
  if (std::exchange(absent.pool, this) != this) absent.workers = 0;
  std::uint64_t claimed = 0;
  for (int spins = 0; running_.load(std::memory_order_acquire) > 0; ++spins) {
    std::uint64_t generation = generation_.load(std::memory_order_relaxed);
    if (const std::uint64_t left = generation & (spins < spins_before_claim ? absent.workers : call_bits); left != 0) {
      const int worker = std::countr_zero(left) + 1;
      pool_point();
      if (!generation_.compare_exchange_strong(generation, generation & ~bit_of(worker))) continue;
      claimed |= bit_of(worker);
      call(worker);
      running_.fetch_sub(1, std::memory_order_relaxed);
    } else if (spins < spins_before_sleep) {
      pause_briefly();
    } else {
      std::this_thread::yield();  // a worker has begun and lost its core
    }
  }
  const std::uint64_t called = call_bits >> (number_shift - std::min<std::size_t>(workers, number_shift));
  absent.workers = (absent.workers & ~called) | claimed;
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(std::int64_t, std::int64_t)> body) {
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
  if (count == 1 || at_once() == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  run([&](int) {
    for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  });
}

}  // namespace cermet
