#include "quant/input_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/checked.hpp"
#include "quant/row_loops.hpp"

namespace cermet {
namespace {

constexpr std::size_t bin_count = 1 << 14;
constexpr std::uint32_t infinity_bits = 0x7f800000u;
constexpr std::int64_t column_block = 128;  // of one thread: what it keeps of them stays in the first cache

float lower_edge(std::size_t bin) { return format::float_from_bits(static_cast<std::uint32_t>(bin) << 17); }

}  // namespace

InputStatistics::InputStatistics(std::int64_t columns)
    : largest_(static_cast<std::size_t>(columns)), squares_(static_cast<std::size_t>(columns)) {}

void InputStatistics::add(const float* rows, std::int64_t count, ThreadPool* pool) {
  std::mutex merging;
  bins_.resize(bin_count);
  const auto observe = [&](std::int64_t begin,
                           std::int64_t end) {  // all rows of columns [begin, end): a channel's sum has one order
    std::vector<float> squares(static_cast<std::size_t>(columns()));
    std::vector<std::uint64_t> bins(bin_count);
    for (std::int64_t from = begin; from < end; from += column_block) {
      const std::int64_t to = std::min(from + column_block, end);
      for (std::int64_t r = 0; r < count; ++r)
        row_loops::observe(rows + r * columns(), from, to, largest_.data(), squares.data(), bins.data());
    }
    for (std::int64_t c = begin; c < end; ++c)
      squares_[static_cast<std::size_t>(c)] += static_cast<double>(squares[static_cast<std::size_t>(c)]);
    const std::scoped_lock lock(merging);
    for (std::size_t bin = 0; bin < bin_count; ++bin) bins_[bin] += bins[bin];
  };
  if (pool && count > 1) pool->parallel_for(columns(), column_block, observe);
  else observe(0, columns());
  rows_ += count;
}

bool InputStatistics::is_finite() const {
  return std::ranges::all_of(largest_, [](std::uint32_t bits) { return bits < infinity_bits; });
}

double InputStatistics::absmax() const {
  return largest_.empty() ? 0 : static_cast<double>(format::float_from_bits(*std::ranges::max_element(largest_)));
}

float InputStatistics::absmax(std::int64_t column) const {
  return format::float_from_bits(largest_[static_cast<std::size_t>(column)]);
}

double InputStatistics::mean_square(std::int64_t column) const {
  return rows_ == 0 ? 0 : squares_[static_cast<std::size_t>(column)] / static_cast<double>(rows_);
}

double InputStatistics::percentile(double percentage) const {
  const double total = static_cast<double>(rows_) * static_cast<double>(columns());
  if (total == 0) return 0;
  const double rank = percentage / 100 * total;
  double below = 0;
  for (std::size_t bin = 0; bin < bin_count; ++bin) {
    const auto here = static_cast<double>(bins_[bin]);
    if (here == 0 || below + here < rank) {
      below += here;
      continue;
    }
    const double from = static_cast<double>(lower_edge(bin)), to = static_cast<double>(lower_edge(bin + 1));
    return std::min(from + (to - from) * std::max(0.0, rank - below) / here, absmax());
  }
  return absmax();
}

double percentile_of(std::span<const float> values, double percentage) {
  if (values.empty()) return 0;
  std::vector<float> sorted(values.size());
  std::ranges::transform(values, sorted.begin(), [](float x) { return std::abs(x); });
  const double position = percentage / 100 * static_cast<double>(sorted.size() - 1);
  const auto index = static_cast<std::ptrdiff_t>(position);
  std::nth_element(sorted.begin(), sorted.begin() + index, sorted.end());
  const float at = sorted[static_cast<std::size_t>(index)];
  if (static_cast<std::size_t>(index) + 1 == sorted.size()) return static_cast<double>(at);
  const float next = *std::min_element(sorted.begin() + index + 1, sorted.end());
  return static_cast<double>(at) + (position - static_cast<double>(index)) * static_cast<double>(next - at);
}

}  // namespace cermet
