// Loops over the panels of a product that threads share out as they get free: include after <hwy/foreach_target.h>.
#if defined(CERMET_PANEL_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_PANEL_LOOPS_INL
#undef CERMET_PANEL_LOOPS_INL
#else
#define CERMET_PANEL_LOOPS_INL
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/thread_pool.hpp"
#include "kernel/cpu/shared_items.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Calls body(begin, end) over [0, count) in pieces that threads take as they get free: long at first, so that each
/// streams far, at last single ones, so that all end together. No piece is longer than `longest`.
template <class Body>
void guided_for(ThreadPool& pool, std::int64_t count, std::int64_t longest, Body&& body) {
  if (count == 0) return;
  if (pool.size() == 1 || count == 1) {
    for (std::int64_t begin = 0; begin < count; begin += longest) body(begin, std::min(count, begin + longest));
    return;
  }
  std::atomic<std::int64_t> next{0};
  pool.run([&](int) {
    for (std::int64_t begin = next.load(std::memory_order_relaxed); begin < count;) {
      const std::int64_t end = begin + std::clamp<std::int64_t>((count - begin) / (2 * pool.size()), 1, longest);
      if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      body(begin, end);
      begin = next.load(std::memory_order_relaxed);
    }
  });
}

/// Calls body(begin, end) for the items of [0, count): each thread its own part, then single ones that others have
/// left. What memory is asked for ahead is so the thread's own, and no line of memory is shared until a thread is done.
template <class Body>
void parts_for(ThreadPool& pool, std::int64_t count, Body&& body) {
  if (count == 0) return;
  if (pool.size() == 1 || count == 1) return body(0, count);
  SharedItems shared(count, pool.size());
  pool.run([&](int thread) {
    for (std::int64_t i = shared.take(thread); i >= 0; i = shared.take(thread)) body(i, i + 1);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
