#include "runtime/super_kernel/joinable_choice.hpp"

#include <algorithm>

#include "jit/walk.hpp"

namespace cermet {
namespace {

/// Fallbacks do not count: launches that take one run by themselves.
bool can_join(const Kernel& kernel, const Region& region, const Config& config) {
  return std::ranges::all_of(kernel.programs(region, config), [](const cuda::Program& program) { return program.fallback || !jit::declines_walk(program); });
}

}  // namespace

void choose_joinable(const Region& region, Choice& choice) {
  const Kernel& kernel = *choice.kernel;
  if (!kernel.programs || can_join(kernel, region, choice.config)) return;
  const Config* best = nullptr;
  double least = 0;
  const std::vector<Config> configs = kernel.configs(region);
  for (const Config& config : configs) {
    if (!can_join(kernel, region, config)) continue;
    const double seconds = kernel.cost ? kernel.cost(region, config, limits_of(region.target())) : 0;
    if (best && seconds > least) continue;
    best = &config;
    least = seconds;
  }
  if (best) choice.config = *best;
}

}  // namespace cermet
