#include "runtime/super_kernel/joinable_choice.hpp"

#include <algorithm>
#include <tuple>

#include "jit/walk.hpp"
#include "kernel/cuda/kernels.hpp"

namespace cermet {
namespace {

/// Fallbacks do not count: launches that take one run by themselves.
bool can_join(const Kernel& kernel, const Region& region, const Config& config) {
  return std::ranges::all_of(kernel.programs(region, config), [](const cuda::Program& program) { return program.fallback || !jit::declines_walk(program); });
}

}  // namespace

void choose_joinable(const Region& region, Choice& choice) {
  const Kernel& kernel = *choice.kernel;
  if (!kernel.programs || kernel.programs(region, choice.config).empty()) return;  // a call of the host
  const std::vector<Config> configs = kernel.configs(region);
  const bool joins = can_join(kernel, region, choice.config), streams = kernel.programs(region, choice.config).front().stage_bytes > 0;
  if (joins && !(streams && std::ranges::count(configs, choice.config) > 0)) return;
  // Of equal cost: one block on an SM, which is all that there is, so that none computes two shares one after the other; then most room for weights, whose
  // stages are small, so that the number of bytes on their way can be chosen.
  using Rank = std::tuple<double, int, std::int64_t, std::int64_t>;
  const Config* best = nullptr;
  Rank least;
  for (const Config& config : configs) {
    if (!can_join(kernel, region, config)) continue;
    const cuda::Program program = kernel.programs(region, config).front();
    if (joins && program.stage_bytes == 0) continue;
    const double seconds = kernel.cost ? kernel.cost(region, config, limits_of(region.target())) : 0;
    const Rank rank{seconds, program.min_blocks, program.shared_bytes - program.ring_bytes, program.stage_bytes};
    if (best && rank >= least) continue;
    best = &config;
    least = rank;
  }
  if (best) choice.config = *best;
}

void choose_launched(const Region& region, Choice& choice) {
  if (!choice.kernel->name.starts_with("ranks.")) return;
  const std::string name = "peer" + choice.kernel->name.substr(choice.kernel->name.find('.'));
  for (const Kernel* const kernel : cuda::all_kernels())
    if (kernel->name == name && kernel->op == choice.kernel->op && !kernel->declines(region))
      return void(choice = Choice(*kernel, kernel->configs(region).front()));
}

}  // namespace cermet
