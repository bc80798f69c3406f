#include "select/margin.hpp"

#include <algorithm>

#include "base/target.hpp"
#include "select/tuning_key.hpp"

namespace cermet {
namespace {

/// Models that no record was held against: they order what is far apart. So do models of configurations other than the
/// recorded ones.
constexpr double unchecked = 0.35;

/// Contexts are modelled at the longest that a cache holds; what is best there is often not what is best at the lengths
/// that launches see.
constexpr double contexts = 0.6;

/// How far off the models of these kernels were at most on an H200: docs/notes/selection.md. Of one that is not named:
/// nothing.
struct Checked {
  std::string_view kernel;
  double margin;
};
constexpr Checked checked[] = {
    {"gemm.linear.hopper", 0.15},      {"gemm.dual_linear.hopper", 0.15},
    {"gemm.scaled_mm.hopper", 0.2},    {"gemm.linear.stream", 0.15},
    {"gemm.dual_linear.stream", 0.15}, {"gemm.scaled_mm.stream", 0.2},
    {"cublaslt.linear", 0.2},          {"gemv.linear", 0.15},
    {"gemv.scaled_mm", 0.2},           {"gemm.linear.dots", 0.3},
};

/// How long groups are is not known beforehand, so that both models of grouped products are off, but alike: 2 to 4 rows
/// in a group are faster in tiles (bench/results/h200/tune/few-rows.jsonl).
constexpr double grouped = 0.1;

/// Between tiles of the Hopper product for a known number of rows, which models put in the order of
/// bench/results/h200/compare/hopper-tiles.json where they say that one takes less by this.
constexpr double hopper_tiles = 0.1;

bool is_attention(const Kernel& kernel) { return kernel.name.starts_with("attention."); }

std::optional<double> checked_margin(const Kernel& kernel, const Target* target) {
  if (!target || target->compute_capability != 90) return std::nullopt;
  const auto* const row = std::ranges::find(checked, kernel.name, &Checked::kernel);
  return row == std::end(checked) ? std::nullopt : std::optional(row->margin);
}

}  // namespace

double config_margin(const Kernel& kernel, const Region& region) {
  const Target* const target = region.target();
  if (target && is_attention(kernel)) return contexts;
  // A tile that is best for the most rows alone is no choice where they vary: the kernel's own has one for every number
  // of them.
  const bool tiles = kernel.name == "gemm.linear.hopper" || kernel.name == "gemm.scaled_mm.hopper";
  return tiles && checked_margin(kernel, target) && symbols_of(region).empty() ? hopper_tiles : unchecked;
}

bool is_compared_by_own_choice(const Kernel& kernel, const Target* target) {
  return checked_margin(kernel, target).has_value();
}

double kernel_margin(const Kernel& kernel, const Kernel& before, const Target* target) {
  if (kernel.name == "gemm.grouped_linear.hopper" && before.name == "gemv.grouped_linear") return grouped;
  const auto own = checked_margin(kernel, target), other = checked_margin(before, target);
  if ((other && !own) || is_attention(kernel)) return 1;
  if (own && other) return std::max(*own, *other);
  return target && (is_attention(kernel) || is_attention(before)) ? contexts : unchecked;
}

}  // namespace cermet
