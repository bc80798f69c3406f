// What the calibration saw at one input of linear modules: per channel and over all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.hpp"

namespace cermet {

class InputStatistics {
 public:
  InputStatistics() = default;
  explicit InputStatistics(std::int64_t columns);

  /// Takes `count` rows of float32 [count, columns]. The figures depend on the rows and on how they come in calls, not
  /// on threads. Without a pool, the calling thread does it all.
  void add(const float* rows, std::int64_t count, ThreadPool* pool);

  std::int64_t columns() const { return static_cast<std::int64_t>(largest_.size()); }
  std::int64_t rows() const { return rows_; }
  bool is_finite() const;
  double absmax() const;
  /// Largest absolute value of a channel.
  float absmax(std::int64_t column) const;
  /// Mean of squares of a channel.
  double mean_square(std::int64_t column) const;
  /// The value that `percentage` percent of all absolute values do not exceed, to within a 64th; 0 where there are
  /// none.
  double percentile(double percentage) const;

 private:
  std::int64_t rows_ = 0;
  std::vector<std::uint32_t>
      largest_;  ///< bits of absolute values: their order is that of the values, and NaN is above all
  std::vector<double> squares_;
  std::vector<std::uint64_t> bins_;  ///< absolute values by exponent and the first 6 bits of their fraction
};

/// Exact percentile of absolute values, with linear interpolation between neighbours; 0 for none.
double percentile_of(std::span<const float> values, double percentage);

}  // namespace cermet
