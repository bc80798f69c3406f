#include "runtime/overlap.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cermet {
namespace {

/// By launch: the set of launches that end before it starts.
class Predecessors {
 public:
  explicit Predecessors(std::size_t count) : words_((count + 63) / 64), bits_(count * words_) {}
  bool contains(std::size_t launch, std::size_t before) const {
    return bits_[launch * words_ + before / 64] >> (before % 64) & 1;
  }
  /// `before` and all that ends before it; `before` must be complete.
  void add(std::size_t launch, std::size_t before) {
    for (std::size_t w = 0; w < words_; ++w) bits_[launch * words_ + w] |= bits_[before * words_ + w];
    bits_[launch * words_ + before / 64] |= std::uint64_t{1} << (before % 64);
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

std::optional<Overlap> common(std::span<const ByteRange> written, std::span<const ByteRange> touched) {
  for (const ByteRange& w : written)
    for (const ByteRange& t : touched)
      if (w.begin && t.begin && w.bytes > 0 && t.bytes > 0 && w.overlaps(t)) return Overlap{0, 0, w, t};
  return {};
}

std::optional<Overlap> conflict(const Plan& plan, std::size_t first, std::size_t second) {
  const Launch &a = plan.launches()[first], &b = plan.launches()[second];
  std::optional<Overlap> found = common(plan.writes(a), plan.writes(b));
  if (!found) found = common(plan.writes(a), plan.reads(b));
  if (!found) found = common(plan.writes(b), plan.reads(a));
  if (found) found->first = static_cast<std::uint32_t>(first), found->second = static_cast<std::uint32_t>(second);
  return found;
}

}  // namespace

bool must_follow(const Plan& plan, std::size_t before, std::size_t after) {
  return conflict(plan, before, after).has_value();
}

std::vector<LaunchOrder> dependencies_of(const Plan& plan) {
  std::vector<LaunchOrder> order;
  Predecessors known(plan.launches().size());
  for (std::size_t b = 0; b < plan.launches().size(); ++b)
    for (std::size_t a = b; a-- > 0;)
      if (!known.contains(b, a) && conflict(plan, a, b)) {
        known.add(b, a);
        order.push_back({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b)});
      }
  return order;
}

std::optional<Overlap> find_overlap(const Plan& plan, std::span<const LaunchOrder> order) {
  std::vector<LaunchOrder> sorted(order.begin(), order.end());
  std::ranges::sort(sorted, {}, &LaunchOrder::after);
  Predecessors known(plan.launches().size());
  for (const LaunchOrder& pair : sorted) {
    require(pair.before < pair.after && pair.after < plan.launches().size(),
            "order: expected launches before later ones of {}, found {} before {}", plan.launches().size(), pair.before,
            pair.after);
    known.add(pair.after, pair.before);
  }
  for (std::size_t b = 0; b < plan.launches().size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      if (!known.contains(b, a))
        if (const std::optional<Overlap> found = conflict(plan, a, b)) return found;
  return {};
}

}  // namespace cermet
