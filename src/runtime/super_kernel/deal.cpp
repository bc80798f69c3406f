#include "runtime/super_kernel/deal.hpp"

#include <algorithm>

#include "runtime/limits.hpp"

namespace cermet {
namespace {

/// What a launch costs each of its blocks whatever it computes: a wait, barriers, parameters and a counter
/// (walk_cost.cpp). Of a walk on an H200.
constexpr double usual_boundary_seconds = 1.1e-6;

class Dealer {
 public:
  Dealer(std::uint32_t blocks, double boundary_seconds) : boundary_seconds_(boundary_seconds), free_(blocks) {}

  /// Deals out a whole list: the first block of each.
  std::vector<std::uint32_t> take(std::span<const DealtLaunch> launches,
                                  std::span<const std::vector<std::uint32_t>> needs) {
    std::vector<double> ended;
    std::vector<std::uint32_t> list;
    for (std::size_t l = 0; l < launches.size(); ++l) {
      double ready = 0;
      for (const std::uint32_t need : needs[l]) ready = std::max(ready, ended[need]);
      list.push_back(best_for(launches[l], ready));
      ended.push_back(give(list.back(), launches[l], ready));
    }
    return list;
  }
  double last_end() const { return *std::ranges::max_element(free_); }

 private:
  /// The best block for item 0, where no item can start before `ready`.
  std::uint32_t best_for(const DealtLaunch& launch, double ready) const {
    if (launch.items % free_.size() == 0 || std::ranges::all_of(free_, [&](double time) { return time <= ready; }))
      return 0;
    Assignment best = assignment_at(0, launch, ready);
    for (std::uint32_t first = 1; first < free_.size(); ++first)
      if (const Assignment assignment = assignment_at(first, launch, ready); assignment.before(best)) best = assignment;
    return best.first;
  }

  /// Gives the blocks their items, and says when the last one ends.
  double give(std::uint32_t first, const DealtLaunch& launch, double ready) {
    double last = ready;
    for (std::uint32_t i = 0; i < blocks_of(launch); ++i) {
      double& time = free_[(first + i) % free_.size()];
      time = end_of(time, i, launch, ready);
      last = std::max(last, time);
    }
    return last;
  }

  struct Assignment {
    std::uint32_t first = 0;
    double end = 0, sum = 0;  ///< of its last block; of all of its blocks

    bool before(const Assignment& other) const {
      constexpr double tolerance = 1e-12;  // sums of equal times, in another order
      if (end < other.end - tolerance || end > other.end + tolerance) return end < other.end;
      return sum < other.sum - tolerance;
    }
  };

  std::uint32_t blocks_of(const DealtLaunch& launch) const {
    return std::min(launch.items, static_cast<std::uint32_t>(free_.size()));
  }
  double end_of(double time, std::uint32_t i, const DealtLaunch& launch, double ready) const {
    const auto blocks = static_cast<std::uint32_t>(free_.size());
    const std::uint32_t items = launch.items / blocks + (i < launch.items % blocks ? 1 : 0);
    return std::max(time, ready) + boundary_seconds_ + items * launch.item_seconds;
  }
  Assignment assignment_at(std::uint32_t first, const DealtLaunch& launch, double ready) const {
    Assignment assignment{first, 0, 0};
    for (std::uint32_t i = 0; i < blocks_of(launch); ++i) {
      const double end = end_of(free_[(first + i) % free_.size()], i, launch, ready);
      assignment.end = std::max(assignment.end, end);
      assignment.sum += end;
    }
    return assignment;
  }

  double boundary_seconds_;
  std::vector<double> free_;  ///< by block: when it has ended what it was given
};

}  // namespace

double item_seconds(const Region& region, const Cost& work, std::uint32_t items) {
  const Target& target = *region.target();
  return modelled_time(region.problem(), work, limits_of(&target)).seconds() * target.multiprocessors /
         std::max(1u, items);
}

std::vector<std::uint32_t> first_blocks(std::span<const DealtLaunch> launches,
                                        std::span<const std::vector<std::uint32_t>> needs, std::uint32_t blocks) {
  return Dealer(blocks, usual_boundary_seconds).take(launches, needs);
}

double dealt_seconds(std::span<const DealtLaunch> launches, std::span<const std::vector<std::uint32_t>> needs,
                     std::uint32_t blocks, double boundary_seconds) {
  Dealer dealer(blocks, boundary_seconds);
  dealer.take(launches, needs);
  return dealer.last_end();
}

}  // namespace cermet
