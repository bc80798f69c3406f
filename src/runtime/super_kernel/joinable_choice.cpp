#include "runtime/super_kernel/joinable_choice.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "jit/walk.hpp"
#include "kernel/cuda/kernels.hpp"

namespace cermet {
namespace {

/// A kernel that is modelled to take so many times as long as the chosen one is not taken for a walk's sake.
constexpr double most_loss = 2;

/// Programs that cannot join, not counting fallbacks: launches that take one run by themselves.
std::int64_t apart(std::span<const cuda::Program> programs) {
  return std::ranges::count_if(
      programs, [](const cuda::Program& program) { return !program.fallback && jit::declines_walk(program); });
}

struct Joinable {
  /// Fewest programs apart; then of least cost. Of equal cost: one block on an SM, which is all that there is, so that
  /// none computes two shares one after the other; then most room for weights, whose stages are small, so that the
  /// number of bytes on their way can be chosen.
  using Rank = std::tuple<std::int64_t, double, int, std::int64_t, std::int64_t>;
  Config config;
  Rank rank;
};

/// The best configuration in which a kernel's first program, which steps of few rows launch, can join; `streams`: of
/// those that share the ring. Others cost alike unless most_loss lies between them: costs are of the most rows of a
/// pass, and attention of sequences with several queries, which a step has none of, wants other tiles.
std::optional<Joinable> best_of(const Kernel& kernel, const Region& region, bool streams = false) {
  std::vector<Joinable> list;
  if (!kernel.programs) return std::nullopt;
  for (const Config& config : kernel.configs(region)) {
    const std::vector<cuda::Program> programs = kernel.programs(region, config);
    const cuda::Program& first = programs.front();
    if (jit::declines_walk(first) || (streams && !first.streams())) continue;
    const double seconds = kernel.cost ? kernel.cost(region, config, limits_of(region.target())) : 0;
    const std::int64_t stage_bytes = first.walk ? first.walk->stage_bytes : 0;
    list.push_back({config, {apart(programs), seconds, first.min_blocks, jit::walk_bytes(first), stage_bytes}});
  }
  if (list.empty()) return std::nullopt;
  const auto best = [&] { return *std::ranges::min_element(list, {}, &Joinable::rank); };
  if (streams) return best();
  const double least = std::get<double>(best().rank);
  for (Joinable& each : list)
    if (double& seconds = std::get<double>(each.rank); seconds <= most_loss * least) seconds = least;
  return best();
}

/// Another kernel that takes the region, where none of the chosen one's configurations can join or it wants whole
/// blocks, so that no weights come early.
void choose_other(const Region& region, Choice& choice) {
  const auto seconds_of = [&](const Kernel& kernel, const Config& config) {
    return kernel.cost ? kernel.cost(region, config, limits_of(region.target())) : 0;
  };
  const double seconds = seconds_of(*choice.kernel, choice.config);
  std::optional<Choice> other;
  double least = most_loss * seconds;
  for (const Candidate& candidate : explain_selection(region).candidates) {
    if (candidate.decline || !candidate.kernel->cost) continue;
    const std::optional<Joinable> best = best_of(*candidate.kernel, region);
    if (!best || candidate.kernel->programs(region, best->config).front().has_whole_block() ||
        seconds_of(*candidate.kernel, best->config) > least)
      continue;
    other = Choice(*candidate.kernel, best->config);
    least = seconds_of(*candidate.kernel, best->config);
  }
  if (other) choice = *other;
}

}  // namespace

void choose_joinable(const Region& region, Choice& choice) {
  const Kernel& kernel = *choice.kernel;
  if (!kernel.programs) return;
  const std::vector<cuda::Program> programs = kernel.programs(region, choice.config);
  if (programs.empty()) return;  // a call of the host
  if (programs.front().has_whole_block()) return choose_other(region, choice);
  const std::int64_t now = apart(programs);
  const bool streams = now == 0 && programs.front().streams();
  if (now == 0 && !(streams && std::ranges::count(kernel.configs(region), choice.config) > 0)) return;
  const std::optional<Joinable> best = best_of(kernel, region, streams);
  if (best && (streams || std::get<0>(best->rank) < now)) choice.config = best->config;
  else if (!best) choose_other(region, choice);
}

void choose_launched(const Region& region, Choice& choice) {
  const auto is_call_of_host = [&](const Kernel& kernel) { return kernel.programs(region).empty(); };
  if (!choice.kernel->communicates || !is_call_of_host(*choice.kernel)) return;
  for (const Kernel* const kernel : cuda::all_kernels())
    if (kernel->op == choice.kernel->op && kernel->communicates && !kernel->declines(region) &&
        !is_call_of_host(*kernel))
      return void(choice = Choice(*kernel, kernel->configs(region).front()));
}

}  // namespace cermet
