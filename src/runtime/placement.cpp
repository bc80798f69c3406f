#include "runtime/placement.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet {
namespace {

/// The placed ones among known lifetimes, searched by overlap in time: in the order of their first steps, with the
/// latest last step of every stretch of that order (an interval tree). A search costs a logarithm for each block that
/// it finds.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(std::span<const Lifetime> lifetimes)
      : lifetimes_(lifetimes), order_(lifetimes.size()), rank_(lifetimes.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return lifetimes[a].first < lifetimes[b].first; });
    for (std::size_t i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
    while (leaves_ < order_.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, -1);
  }
  void insert(std::size_t block) {
    for (std::size_t node = leaves_ + rank_[block]; node > 0; node /= 2)
      latest_[node] = std::max(latest_[node], lifetimes_[block].last);
  }
  /// Calls visit(block) for every placed block that lives at a step of `lifetime`.
  template <class Visit>
  void for_overlapping(const Lifetime& lifetime, Visit visit) const {
    const auto begun = [&](std::size_t block) { return lifetimes_[block].first <= lifetime.last; };
    const auto end =
        static_cast<std::size_t>(std::partition_point(order_.begin(), order_.end(), begun) - order_.begin());
    search(1, 0, leaves_, end, lifetime.first, visit);
  }

 private:
  /// Of the blocks [begin, begin + count) of the order, which are below `node`, those before `end` that live at step
  /// `first` or later.
  template <class Visit>
  void search(std::size_t node, std::size_t begin, std::size_t count, std::size_t end, std::int32_t first,
              Visit& visit) const {
    if (begin >= end || latest_[node] < first) return;
    if (count == 1) return visit(order_[begin]);
    search(2 * node, begin, count / 2, end, first, visit);
    search(2 * node + 1, begin + count / 2, count / 2, end, first, visit);
  }

  std::span<const Lifetime> lifetimes_;
  std::vector<std::size_t> order_, rank_;  ///< blocks by first step; the place of each in that order
  std::size_t leaves_ = 1;
  std::vector<std::int32_t> latest_;  ///< by node of the tree, whose root is 1; -1 where nothing is placed
};

/// Lowest offset of the smallest gap between `taken` (sorted by offset) that holds `bytes`; the end when none does.
std::int64_t best_gap(const std::vector<std::pair<std::int64_t, std::int64_t>>& taken, std::int64_t bytes) {
  std::int64_t end = 0, best = -1, best_size = std::numeric_limits<std::int64_t>::max();
  for (const auto& [offset, size] : taken) {
    const std::int64_t gap = offset - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, offset + size);
  }
  return best >= 0 ? best : end;
}

std::int64_t most_alive(std::span<const Lifetime> lifetimes, std::int64_t alignment) {
  std::vector<std::pair<std::int32_t, std::int64_t>> events;  // a block ends before another begins at the next step
  for (const Lifetime& l : lifetimes) {
    events.emplace_back(l.first, round_up(l.bytes, alignment));
    events.emplace_back(l.last + 1, -round_up(l.bytes, alignment));
  }
  std::sort(events.begin(), events.end());
  std::int64_t alive = 0, most = 0;
  for (const auto& [step, bytes] : events) most = std::max(most, alive = checked_total(alive, bytes));
  return most;
}

}  // namespace

std::int64_t checked_total(std::int64_t a, std::int64_t b) {
  const auto total = checked_add(a, b);
  if (!total) fail(Status::out_of_memory, "memory plan: expected values of less than 2^63 bytes together, found more");
  return *total;
}

Placement place(std::span<const Lifetime> lifetimes, std::int64_t alignment) {
  Placement placement;
  placement.offsets.assign(lifetimes.size(), 0);
  placement.lower_bound = most_alive(lifetimes, alignment);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  PlacedBlocks placed(lifetimes);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const std::size_t i : order) {
    const std::int64_t bytes = round_up(lifetimes[i].bytes, alignment);
    if (bytes == 0) continue;
    taken.clear();
    placed.for_overlapping(lifetimes[i], [&](std::size_t other) {
      taken.emplace_back(placement.offsets[other], round_up(lifetimes[other].bytes, alignment));
    });
    std::sort(taken.begin(), taken.end());
    placement.offsets[i] = best_gap(taken, bytes);
    placement.bytes = std::max(placement.bytes, checked_total(placement.offsets[i], bytes));
    placed.insert(i);
  }
  return placement;
}

}  // namespace cermet
