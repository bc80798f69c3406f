#include "base/pinned_threads.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace cermet {
namespace {

pid_t own_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

}  // namespace

PinnedThreads::PinnedThreads(ThreadPool& pool) {
  if (pool.at_once() < pool.size()) return;
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  const auto threads = static_cast<std::size_t>(pool.size());
  if (cores.size() < threads) return;
  pinned_.resize(threads);
  // The caller does what a worker has not begun when its own call is over, so that call ends last.
  std::atomic<std::size_t> begun{0};
  pool.run([&](int thread) {
    const auto i = static_cast<std::size_t>(thread);
    begun.fetch_add(1);
    while (thread == 0 && begun.load() < threads) sched_yield();
    Pinned& pinned = pinned_[i];
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cores[i], &own);
    if (sched_getaffinity(0, sizeof pinned.cores, &pinned.cores) == 0 && sched_setaffinity(0, sizeof own, &own) == 0)
      pinned.thread = own_thread();
  });
}

PinnedThreads::~PinnedThreads() {
  for (const Pinned& pinned : pinned_)
    if (pinned.thread != 0) sched_setaffinity(pinned.thread, sizeof pinned.cores, &pinned.cores);
}

}  // namespace cermet
