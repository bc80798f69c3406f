#include "select/margin.hpp"

#include <algorithm>

#include "base/target.hpp"
#include "select/tuning_key.hpp"

namespace cermet {
namespace {

using Assumes = ModelError::Assumes;

/// Models that no record was compared with: they order what is far apart. So do models of configurations other than the
/// recorded ones.
constexpr double unchecked = 0.35;

/// Contexts are modelled at the longest that a cache holds; what is best there is often not what is best at the lengths
/// that launches see.
constexpr double contexts = 0.6;

/// How long groups are is not known beforehand, so that both models of grouped products are off, but alike: 2 to 4 rows
/// in a group are faster in tiles (bench/results/h200/tune/few-rows.jsonl).
constexpr double grouped = 0.1;

/// On an H200, whose times were recorded.
std::optional<double> recorded_error(const Kernel& kernel, const Target* target) {
  return target && target->compute_capability == 90 ? kernel.model_error.recorded : std::nullopt;
}

}  // namespace

double config_margin(const Kernel& kernel, const Region& region) {
  if (kernel.model_error.assumes == Assumes::longest_context) return contexts;
  // A configuration that is best for the most rows alone is no choice where they vary: the kernel's own has a tile for
  // every number of them.
  const bool is_known = recorded_error(kernel, region.target()) && symbols_of(region).empty();
  return is_known ? kernel.model_error.of_configs.value_or(unchecked) : unchecked;
}

bool is_compared_by_own_choice(const Kernel& kernel, const Target* target) {
  return recorded_error(kernel, target).has_value();
}

double kernel_margin(const Kernel& kernel, const Kernel& before, const Target* target) {
  const Assumes assumes = kernel.model_error.assumes, before_assumes = before.model_error.assumes;
  if (assumes == Assumes::group_lengths && before_assumes == Assumes::group_lengths) return grouped;
  const auto own = recorded_error(kernel, target), other = recorded_error(before, target);
  if ((other && !own) || assumes == Assumes::longest_context) return 1;
  if (own && other) return std::max(*own, *other);
  return before_assumes == Assumes::longest_context ? contexts : unchecked;
}

}  // namespace cermet
