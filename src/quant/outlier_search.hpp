// Chooses how an input's outliers are treated, and its static scale, by the error of what its modules compute.
#pragma once

#include <vector>

#include "quant/pipeline.hpp"
#include "quant/search_unit.hpp"

namespace cermet {

struct OutlierChoice {
  AntiOutlier method = AntiOutlier::none;  ///< never automatic
  Smoothing smoothing;
  float input_scale = 0;  ///< of a static input
};

/// A static input scale to try.
struct ScalePoint {
  float scale = 0;
  bool clamped =
      false;  ///< at or below the percentile: what a clamp may choose; the others reach up to the largest value
};
/// Scales between the largest value and the percentile, and from the percentile downwards, as `stored` holds them;
/// without repetitions. `coarse`: every other one.
std::vector<ScalePoint> scale_points(double absmax, double percentile, const QuantizationGrid& grid, DType stored,
                                     bool coarse);

class OutlierSearch {
 public:
  /// `smoothings` are tried in their order; the first stands for none. Everything must outlive the search.
  OutlierSearch(const QuantizeOptions& options, const LinearScheme& scheme, const InputStatistics& statistics,
                std::vector<Smoothing> smoothings);

  /// Measures a unit; errors of several are added up. A static scale takes exactly one unit; with smoothing, fewer
  /// scales are tried.
  void add(const SearchUnit& unit);
  /// Of each method that the options allow, the smoothing and scale with the least error on calibration rows; of those,
  /// the one with the least error on held-out rows. Ties go to the earlier one.
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
