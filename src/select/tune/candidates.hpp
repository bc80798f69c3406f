// Everything that could compute a region, as a tuner's search sees it: points with a place among the values of each
// field, and what models say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "select/select.hpp"

namespace cermet {

/// A kernel in one of its configurations.
struct TuneCandidate {
  Choice choice;
  /// Place of each field's value among those of the kernel's space, by field; empty for the kernel's own choice.
  std::vector<int> places;
  double modelled = 0;     ///< seconds; 0 where there is no model
  bool is_listed = false;  ///< one of Kernel::configs, which has what fields that models do not see usually are
};

struct TuneCandidates {
  /// The choice without tuning first; then by kernel, in the order in which selection asks them, each kernel's own
  /// choice and the points of its space.
  std::vector<TuneCandidate> list;
  /// Values of each field, by kernel: what places count in.
  std::vector<std::pair<const Kernel*, std::vector<int>>> sizes;
};

/// Place of each field's value in a point of a space.
std::vector<int> places_of(const ConfigSpace& space, const Config& point);

/// Candidates for a region in device memory or, on the CPU, for so many threads, each once: of a GPU's points that
/// compile to the same programs the first. A kernel that forced_configs() names is left in that configuration, and is
/// then the only one, and so is a choice without tuning whose launches overlap their neighbours in a graph
/// (cuda::Program::alternates): alone it is not measured as it is deployed. Throws Error where no kernel takes the
/// region.
TuneCandidates tune_candidates(const Region& region, int threads);

}  // namespace cermet
