#include "quant/target_quality.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cermet {
namespace {

constexpr double caution = 0.9;  // errors add up with some luck; a budget used in full would often be missed

/// Marks the options that a policy stands for; where one was left out because a quicker one is as good, that one.
void mark(std::vector<SchemeGroup>& table, const Policy& policy) {
  for (SchemeGroup& group : table) {
    const LinearScheme scheme = policy.scheme_of(group.modules.front());
    group.chosen = 0;
    for (std::size_t i = 0; i < group.options.size(); ++i)
      if (group.options[i].scheme == scheme) group.chosen = i;
  }
}

bool stays_real(const std::vector<SchemeGroup>& table) {
  return std::all_of(table.begin(), table.end(),
                     [](const SchemeGroup& group) { return group.options[group.chosen].scheme == LinearScheme{}; });
}

}  // namespace

TargetResult meet_target(const ModelConfig& config, const TargetOptions& options) {
  TargetResult result;
  double budget = 0;
  for (int attempt = 0; attempt < options.max_attempts; ++attempt) {
    const std::vector<LayerResult> layers = options.quantize(result.policy, attempt);
    if (attempt == 0) {
      result.table = sensitivity_table(config, layers);
      mark(result.table, result.policy);
    }
    const double error = total_error(result.table), perplexity = options.perplexity(attempt),
                 rise = perplexity / options.perplexity_before - 1;
    result.attempts.push_back({error, total_seconds(result.table), perplexity});
    if (rise <= options.rise) return result;
    budget = std::min(caution * error * options.rise / rise, caution * (attempt == 0 ? error : budget));
    const std::string last = result.policy.text();
    for (int shrink = 0; shrink < 40; ++shrink, budget *= 0.8) {  // until something changes
      choose_schemes(result.table, budget);
      if (stays_real(result.table)) break;
      result.policy = policy_of(result.table);
      if (result.policy.text() != last) break;
    }
    if (stays_real(result.table)) break;
  }
  fail(Status::invalid_argument,
       "--target-ppl: expected a rise of at most {:.3g} % to be met, found {:.3g} % after {} attempts with ever more "
       "in 16 bit",
       100 * options.rise, 100 * (result.attempts.back().perplexity / options.perplexity_before - 1),
       result.attempts.size());
}

}  // namespace cermet
