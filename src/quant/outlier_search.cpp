#include "quant/outlier_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace cermet {
namespace {

using Input = LinearScheme::Input;

constexpr int steps_to_percentile = 6, steps_below = 4;
constexpr double least_of_percentile = 0.55;

SplitDistance sum_of(const std::vector<SplitDistance>& distances) {
  SplitDistance sum;
  for (const SplitDistance& distance : distances) sum += distance;
  return sum;
}

}  // namespace

std::vector<ScalePoint> scale_points(double absmax, double percentile, const QuantizationGrid& grid, DType stored,
                                     bool coarse) {
  if (!(absmax > 0)) return {{1.0f, false}, {1.0f, true}};
  if (!(percentile > 0)) percentile = absmax;
  std::vector<ScalePoint> points;
  const auto add = [&](double threshold, bool clamped) {
    const ScalePoint point{stored_scale(threshold / static_cast<double>(grid.range), stored), clamped};
    const bool known = std::ranges::any_of(
        points, [&](const ScalePoint& p) { return p.scale == point.scale && p.clamped == clamped; });
    if (!known) points.push_back(point);
  };
  const auto add_between = [&](double from, double to, int steps, bool clamped) {
    for (int i = 0; i <= steps; i += coarse ? steps / 2 : 1)
      add(from * std::pow(to / from, static_cast<double>(i) / steps), clamped);
  };
  add_between(absmax, percentile, steps_to_percentile, false);
  add_between(percentile, percentile * least_of_percentile, steps_below, true);
  return points;
}

double smoothed_absmax(const InputStatistics& statistics, const Smoothing& smoothing) {
  if (smoothing.factors.empty()) return statistics.absmax();
  double largest = 0;
  for (std::size_t k = 0; k < smoothing.factors.size(); ++k)
    largest = std::max(largest, static_cast<double>(statistics.absmax(static_cast<std::int64_t>(k))) /
                                    static_cast<double>(smoothing.factors[k]));
  return largest;
}

OutlierSearch::OutlierSearch(const QuantizeOptions& options, const LinearScheme& scheme,
                             const InputStatistics& statistics, std::vector<Smoothing> smoothings)
    : options_(options), scheme_(scheme), statistics_(statistics), smoothings_(std::move(smoothings)) {}

AntiOutlier OutlierSearch::Entry::method() const {
  if (smoothing == 0) return point.clamped ? AntiOutlier::clamp : AntiOutlier::none;
  return point.clamped ? AntiOutlier::both : AntiOutlier::smooth;
}

/// What cannot be done is replaced by what can: nothing in place of a clamp of dynamic inputs, nothing in place of a
/// smoothing that cannot be folded in.
bool OutlierSearch::allows(AntiOutlier method) const {
  if (options_.anti_outlier == AntiOutlier::automatic) return true;
  const bool smooths = smoothings_.size() > 1 &&
                       (options_.anti_outlier == AntiOutlier::smooth || options_.anti_outlier == AntiOutlier::both);
  const bool clamps = scheme_.input == Input::fixed &&
                      (options_.anti_outlier == AntiOutlier::clamp || options_.anti_outlier == AntiOutlier::both);
  const AntiOutlier reachable =
      smooths ? (clamps ? AntiOutlier::both : AntiOutlier::smooth) : (clamps ? AntiOutlier::clamp : AntiOutlier::none);
  return method == reachable;
}

std::vector<ScalePoint> OutlierSearch::points(const UnitTrial& trial, const SearchUnit& unit,
                                              const Smoothing& smoothing) const {
  if (scheme_.input != Input::fixed) return {ScalePoint{}};
  const std::int64_t columns = trial.x().shape[1];
  const std::span<const float> learned(trial.x().as<float>(),
                                       static_cast<std::size_t>(unit.rows().calibration * columns));
  const double percentile = smoothing.factors.empty() ? statistics_.percentile(options_.clamp_percentile)
                                                      : percentile_of(learned, options_.clamp_percentile);
  return scale_points(smoothed_absmax(statistics_, smoothing), percentile,
                      QuantizationGrid::of(scheme_, options_.range), unit.weight(0).dtype, !smoothing.factors.empty());
}

void OutlierSearch::add(const SearchUnit& unit) {
  std::size_t next = 0;
  const bool first = entries_.empty();
  CERMET_ASSERT(first || scheme_.input != Input::fixed);
  for (std::size_t s = 0; s < smoothings_.size(); ++s) {
    if (!allows(Entry{s, {}, {}}.method()) && !allows(Entry{s, {0, true}, {}}.method())) continue;
    UnitTrial trial(unit, smoothings_[s], QuantizationGrid::of(scheme_, options_.range));
    SplitDistance distance;
    float measured = -1;  // the percentile's scale ends one range and begins the next
    for (const ScalePoint& point : points(trial, unit, smoothings_[s])) {
      if (!allows(Entry{s, point, {}}.method())) continue;
      if (point.scale != measured)
        distance = sum_of(scheme_.input == Input::fixed     ? trial.with_fixed_input(point.scale)
                          : scheme_.input == Input::dynamic ? trial.with_dynamic_input()
                                                            : trial.with_real_input());
      measured = point.scale;
      if (first) entries_.push_back({s, point, distance});
      else entries_[next++].distance += distance;
    }
  }
}

OutlierChoice OutlierSearch::choose() const {
  constexpr std::array methods{AntiOutlier::none, AntiOutlier::clamp, AntiOutlier::smooth, AntiOutlier::both};
  const Entry* chosen = nullptr;
  const auto judged = [](const Entry& entry) {
    return entry.distance.heldout.reference > 0 ? entry.distance.heldout.error : entry.distance.calibration.error;
  };
  for (const AntiOutlier method : methods) {
    const Entry* best = nullptr;
    for (const Entry& entry : entries_)
      if (entry.method() == method && (!best || entry.distance.calibration.error < best->distance.calibration.error))
        best = &entry;
    if (best && (!chosen || judged(*best) < judged(*chosen))) chosen = best;
  }
  CERMET_ASSERT(chosen != nullptr);
  return {chosen->method(), smoothings_[chosen->smoothing], chosen->point.scale};
}

}  // namespace cermet
