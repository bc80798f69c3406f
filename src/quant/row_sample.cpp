#include "quant/row_sample.hpp"

#include <algorithm>
#include <cstring>

namespace cermet {
namespace {

/// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

void RowSample::offer(const float* rows, std::int64_t count) {
  const auto by_priority = [](const Kept& a, const Kept& b) { return a.priority < b.priority; };
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t ordinal = offered_++;
    Kept row{mix(mix(seed_) + static_cast<std::uint64_t>(ordinal)), ordinal, size()};
    if (size() == capacity_) {
      if (capacity_ == 0 || row.priority >= kept_.front().priority) continue;
      std::pop_heap(kept_.begin(), kept_.end(), by_priority);
      row.slot = kept_.back().slot;
      kept_.pop_back();
    } else {
      rows_.resize(static_cast<std::size_t>((size() + 1) * columns_));
    }
    std::memcpy(rows_.data() + row.slot * columns_, rows + r * columns_,
                static_cast<std::size_t>(columns_) * sizeof(float));
    kept_.push_back(row);
    std::push_heap(kept_.begin(), kept_.end(), by_priority);
  }
}

void RowSample::copy_to(float* destination) const {
  std::vector<Kept> sorted = kept_;
  std::ranges::sort(sorted, {}, &Kept::ordinal);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    std::memcpy(destination + static_cast<std::int64_t>(i) * columns_, rows_.data() + sorted[i].slot * columns_,
                static_cast<std::size_t>(columns_) * sizeof(float));
}

}  // namespace cermet
