// Items of a launch, handed out to its threads one by one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace cermet::cpu {

/// Each thread takes the items of its own part in their order, and then what others have left of theirs. Parts are contiguous, so that a thread reads what it
/// wrote in the launch before, which is in its own caches: lines of another core cost several times as much, most of all where cores share no cache.
class SharedItems {
 public:
  SharedItems(std::int64_t count, int threads) : parts_(std::min(threads, most_parts)) {
    for (int p = 0; p < parts_; ++p) part(p).next.store(count * p / parts_, std::memory_order_relaxed), part(p).end = count * (p + 1) / parts_;
  }

  /// The next item; -1 where none is left.
  std::int64_t take(int thread) {
    for (int tried = 0; tried < parts_; ++tried) {
      Part& from = part((thread + tried) % parts_);
      if (from.next.load(std::memory_order_relaxed) >= from.end) continue;
      if (const std::int64_t item = from.next.fetch_add(1, std::memory_order_relaxed); item < from.end) return item;
    }
    return -1;
  }

 private:
  static constexpr int most_parts = 32;
  struct alignas(64) Part {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };
  Part& part(int p) { return all_[static_cast<std::size_t>(p)]; }

  int parts_;
  std::array<Part, most_parts> all_;
};

}  // namespace cermet::cpu
