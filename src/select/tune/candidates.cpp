#include "select/tune/candidates.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "kernel/cuda/task.hpp"

namespace cermet {
namespace {

/// Whether its launches run while those before them end: what such a launch takes depends on what it leaves of an SM to
/// its neighbours, which replays of it alone do not show.
bool overlaps_neighbours(const Region& region, const Choice& choice) {
  return choice.kernel->programs &&
         std::ranges::any_of(choice.kernel->programs(region, choice.config), &cuda::Program::alternates);
}

/// Candidates, each once. On a GPU points that compile to the same programs are one candidate, because what a field
/// says need not show: registers that no row fills, clusters for rows that fit a block.
class UnlikeCandidates {
 public:
  UnlikeCandidates(const Region& region, int threads)
      : region_(region), threads_(threads), limits_(limits_of(region.target())) {}

  void add(const Choice& choice, std::vector<int> places) {
    const std::size_t same = index_of(choice);
    if (same < list.size()) {
      if (list[same].places.empty()) list[same].places = std::move(places);
      return;
    }
    const Kernel& kernel = *choice.kernel;
    list.push_back({choice, std::move(places), kernel.cost ? kernel.cost(region_, choice.config, limits_) : 0, false});
  }

  void mark_listed(const Choice& choice) {
    if (const std::size_t same = index_of(choice); same < list.size()) list[same].is_listed = true;
  }

  std::vector<TuneCandidate> list;

 private:
  using CompiledChoice =
      std::tuple<const Kernel*, std::vector<cuda::Program>, std::int64_t>;  ///< with its programs and workspace

  /// Of the candidate that runs alike; the end of the list where there is none.
  std::size_t index_of(const Choice& choice) {
    const Kernel& kernel = *choice.kernel;
    if (kernel.programs) {
      CompiledChoice compiled{&kernel, kernel.programs(region_, choice.config),
                              kernel.workspace(region_, choice.config, threads_)};
      return known_.emplace(std::move(compiled), list.size()).first->second;
    }
    return static_cast<std::size_t>(std::ranges::find(list, choice, &TuneCandidate::choice) - list.begin());
  }

  const Region& region_;
  int threads_;
  DeviceLimits limits_;
  std::map<CompiledChoice, std::size_t> known_;
};

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
  const Selection selection = explain_selection(region, {.threads = threads, .tuned = false});
  if (!selection.choice.kernel) select_kernel(region);  // says why
  UnlikeCandidates unlike(region, threads);
  unlike.add(selection.choice, {});
  if (overlaps_neighbours(region, selection.choice)) return {std::move(unlike.list), {}};
  std::vector<std::pair<const Kernel*, std::vector<int>>> all_sizes;
  const auto forced = [&](const Kernel& kernel) { return forced_configs().find(kernel.name).has_value(); };
  for (const Candidate& candidate : selection.candidates) {
    const Kernel& kernel = *candidate.kernel;
    if (candidate.decline || (forced(*selection.choice.kernel) && &kernel != selection.choice.kernel)) continue;
    const ConfigSpace space = space_of(kernel, region, threads);
    std::vector<int> sizes;
    for (const ConfigField& field : space.fields())
      sizes.push_back(static_cast<int>(std::max<std::size_t>(1, field.values.size())));
    all_sizes.emplace_back(&kernel, std::move(sizes));
    if (forced(kernel)) continue;
    unlike.add(kernel, {});
    for (const Config& point : space.points()) unlike.add({kernel, point}, places_of(space, point));
    for (const ConfigCost& listed : candidate.configs) unlike.mark_listed({kernel, listed.config});
  }
  return {std::move(unlike.list), std::move(all_sizes)};
}

}  // namespace cermet
