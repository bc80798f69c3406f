// Items of a launch, handed out to its threads one by one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace cermet::cpu {

/// Each thread takes the items of its own part in their order, and then what others have left of theirs, from the end,
/// which they have not asked their caches for. Parts are contiguous, so that a thread reads what it wrote in the launch
/// before, which is in its own caches: lines of another core cost several times as much, most of all where cores share
/// no cache.
class SharedItems {
 public:
  /// Fewer than 2^32 items.
  SharedItems(std::int64_t count, int threads) : parts_(std::min(threads, most_parts)) {
    for (int p = 0; p < parts_; ++p)
      part(p).left.store(
          range(static_cast<std::uint64_t>(count * p / parts_), static_cast<std::uint64_t>(count * (p + 1) / parts_)),
          std::memory_order_relaxed);
  }

  /// The next item; -1 where none is left.
  std::int64_t take(int thread) {
    for (int tried = 0; tried < parts_; ++tried) {
      std::atomic<std::uint64_t>& left = part((thread + tried) % parts_).left;
      const bool is_own = tried == 0;
      for (std::uint64_t seen = left.load(std::memory_order_relaxed); seen >> 32 < (seen & most_items);) {
        const std::uint64_t begin = seen >> 32, end = seen & most_items;
        if (!left.compare_exchange_weak(seen, is_own ? range(begin + 1, end) : range(begin, end - 1),
                                        std::memory_order_relaxed))
          continue;
        return static_cast<std::int64_t>(is_own ? begin : end - 1);
      }
    }
    return -1;
  }

 private:
  static constexpr int most_parts = 32;
  static constexpr std::uint64_t most_items = 0xffffffff;
  static constexpr std::uint64_t range(std::uint64_t begin, std::uint64_t end) { return begin << 32 | end; }
  struct alignas(64) Part {
    std::atomic<std::uint64_t> left;  ///< the first item that no thread has taken, above the end of those
  };
  Part& part(int p) { return all_[static_cast<std::size_t>(p)]; }

  int parts_;
  std::array<Part, most_parts> all_;
};

}  // namespace cermet::cpu
