#include "select/tune/parzen.hpp"

#include <cmath>

namespace cermet {
namespace {

/// Of an observation, what goes to the values next to the one that was seen: less where there are few, which say little
/// about each other.
double share_beside(std::size_t values) { return values < 4 ? 0.1 : 0.5; }

}  // namespace

void ParzenFields::Field::add(int value) {
  const auto at = static_cast<std::size_t>(value);
  const auto share = [&](std::size_t place, double amount) {
    weight_[place] += amount;
    total_ += amount;
  };
  const double beside = share_beside(weight_.size());
  share(at, 1);
  if (at > 0) share(at - 1, beside);
  if (at + 1 < weight_.size()) share(at + 1, beside);
}

double ParzenFields::Field::log_density(int value) const {
  return std::log(weight_[static_cast<std::size_t>(value)] / total_);
}

ParzenFields::ParzenFields(const TuneCandidates& candidates, std::span<const int> cost_places)
    : candidates_(candidates), cost_places_(cost_places), kernels_(static_cast<int>(candidates.sizes.size())) {
  for (const auto& [kernel, sizes] : candidates.sizes) {
    kernel_places_.emplace(kernel, static_cast<int>(kernel_places_.size()));
    own_.emplace(kernel, Field(2));
    for (const int size : sizes) fields_[kernel].emplace_back(size);
  }
}

void ParzenFields::add(std::size_t candidate) {
  const TuneCandidate& c = candidates_.list[candidate];
  const Kernel* const kernel = c.choice.kernel;
  kernels_.add(kernel_places_.at(kernel));
  costs_.add(cost_places_[candidate]);
  own_.at(kernel).add(c.places.empty() ? 1 : 0);
  for (std::size_t f = 0; f < c.places.size(); ++f) fields_.at(kernel)[f].add(c.places[f]);
}

double ParzenFields::log_density(std::size_t candidate) const {
  const TuneCandidate& c = candidates_.list[candidate];
  const Kernel* const kernel = c.choice.kernel;
  double sum = kernels_.log_density(kernel_places_.at(kernel)) + costs_.log_density(cost_places_[candidate]) +
               own_.at(kernel).log_density(c.places.empty() ? 1 : 0);
  for (std::size_t f = 0; f < c.places.size(); ++f) sum += fields_.at(kernel)[f].log_density(c.places[f]);
  return sum;
}

}  // namespace cermet
