#include "select/apart.hpp"

#include <algorithm>

#include "kernel/region_part.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

/// What the chosen kernel is modelled to take; nothing where none takes the region.
std::optional<double> chosen_seconds(const Region& region) {
  const Selection selection = explain_selection(region, {.tuned = false});
  if (!selection.choice.kernel) return std::nullopt;
  const auto candidate = std::ranges::find(selection.candidates, selection.choice.kernel, &Candidate::kernel);
  const auto cost = std::ranges::find(candidate->configs, selection.choice.config, &ConfigCost::config);
  return cost == candidate->configs.end() ? 0 : cost->seconds;
}

}  // namespace

bool is_faster_apart(const Region& region, std::size_t cut) {
  const std::size_t count = region.nodes.size(), anchor = static_cast<std::size_t>(region.anchor);
  const auto part = [&](std::size_t first, std::size_t last) {
    const bool has_anchor = first <= anchor && anchor < last;
    return chosen_seconds(part_of(region, first, last, has_anchor ? anchor : last - 1).region);
  };
  const std::optional<double> together = chosen_seconds(region), first = part(0, cut), second = part(cut, count);
  return together && first && second && *first + *second < *together;
}

}  // namespace cermet
