// The choice of what is done about an input's outliers, and of its fixed scale, by the error of what its modules compute.
#pragma once

#include <vector>

#include "quant/pipeline.hpp"
#include "quant/search_unit.hpp"

namespace cermet {

struct OutlierChoice {
  AntiOutlier method = AntiOutlier::none;  ///< never automatic
  Smoothing smoothing;
  float input_scale = 0;  ///< of a fixed input
};

/// A fixed input scale that is tried.
struct ScalePoint {
  float scale = 0;
  bool clamped = false;  ///< at or below the percentile: what a clamp may choose; the others reach up to the largest value
};
/// Scales between the largest value and the percentile, and from the percentile downwards, as `stored` holds them; without repetitions. `coarse`: every other
/// one.
std::vector<ScalePoint> scale_points(double absmax, double percentile, const CodeGrid& grid, DType stored, bool coarse);

class OutlierSearch {
 public:
  /// `smoothings` are tried in their order; the first stands for none. Everything must outlive the search.
  OutlierSearch(const QuantizeOptions& options, const LinearScheme& scheme, const InputStatistics& statistics, std::vector<Smoothing> smoothings);

  /// Measures a unit; errors of several are added up. A fixed scale takes exactly one unit; with smoothing, fewer scales are tried.
  void add(const SearchUnit& unit);
  /// Of each method that the options allow, the smoothing and scale with the least error on the rows to learn from; of those, the one with the least error on
  /// the rows to judge by. The earlier of two that are equal.
  OutlierChoice choose() const;

 private:
  struct Entry {
    std::size_t smoothing;
    ScalePoint point;
    SplitDistance distance;
    AntiOutlier method() const;
  };
  bool allows(AntiOutlier method) const;
  std::vector<ScalePoint> points(const UnitTrial& trial, const SearchUnit& unit, const Smoothing& smoothing) const;

  const QuantizeOptions& options_;
  LinearScheme scheme_;
  const InputStatistics& statistics_;
  std::vector<Smoothing> smoothings_;
  std::vector<Entry> entries_;
};

/// Largest absolute value of an input after smoothing.
double smoothed_absmax(const InputStatistics& statistics, const Smoothing& smoothing);

}  // namespace cermet
