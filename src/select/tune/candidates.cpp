#include "select/tune/candidates.hpp"

#include <algorithm>

#include "kernel/cuda/task.hpp"

namespace cermet {
namespace {

/// Whether its launches run while those before them end: what such a launch takes depends on what it leaves of an SM to its neighbours, which replays of it
/// alone do not show.
bool overlaps_neighbours(const Region& region, const Choice& choice) {
  return choice.kernel->programs && std::ranges::any_of(choice.kernel->programs(region, choice.config), &cuda::Program::alternates);
}

}  // namespace

std::vector<int> places_of(const ConfigSpace& space, const Config& point) {
  std::vector<int> places;
  const Config complete = space.complete(point);
  for (const ConfigField& field : space.fields()) {
    const auto value = complete.find(field.name);  // a list may have configurations without a field that others have
    const auto found = value ? std::ranges::find(field.values, *value) : field.values.begin();
    places.push_back(static_cast<int>(found - field.values.begin()));
  }
  return places;
}

TuneCandidates tune_candidates(const Region& region, int threads) {
  const DeviceLimits limits = limits_of(region.target());
  const Selection selection = explain_selection(region, {.threads = threads, .tuned = false});
  TuneCandidates all;
  const auto add = [&](const Kernel& kernel, const Config& config, std::vector<int> places) {
    const double seconds = kernel.cost ? kernel.cost(region, config, limits) : 0;
    all.list.push_back({{kernel, config}, std::move(places), seconds});
  };
  if (!selection.choice.kernel) select_kernel(region);  // says why
  add(*selection.choice.kernel, selection.choice.config, {});
  if (overlaps_neighbours(region, selection.choice)) return all;
  const auto forced = [&](const Kernel& kernel) { return forced_configs().find(kernel.name).has_value(); };
  for (const Candidate& candidate : selection.candidates) {
    const Kernel& kernel = *candidate.kernel;
    if (candidate.decline || (forced(*selection.choice.kernel) && &kernel != selection.choice.kernel)) continue;
    const ConfigSpace space = space_of(kernel, region, threads);
    std::vector<int> sizes;
    for (const ConfigField& field : space.fields()) sizes.push_back(static_cast<int>(std::max<std::size_t>(1, field.values.size())));
    all.sizes.emplace_back(&kernel, std::move(sizes));
    const std::size_t before = all.list.size();
    if (forced(kernel)) continue;
    const auto add_new = [&](const Config& config, std::vector<int> places) {
      if (all.list.front().choice == Choice{kernel, config}) all.list.front().places = std::move(places);
      else add(kernel, config, std::move(places));
    };
    for (const Config& point : space.points()) add_new(point, places_of(space, point));
    const auto own = [&](const TuneCandidate& c) { return c.choice.kernel == &kernel && c.choice.config.empty(); };
    if (std::ranges::any_of(all.list, own)) continue;
    add(kernel, {}, {});
    std::rotate(all.list.begin() + static_cast<std::ptrdiff_t>(before), all.list.end() - 1, all.list.end());
  }
  return all;
}

}  // namespace cermet
