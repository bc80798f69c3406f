#include "cli/tune/tune_step.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/bench/bench_batch.hpp"
#include "cli/ui/interrupt.hpp"
#include "select/tuning_key.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t prompt_tokens = 128, new_tokens = 32;
constexpr std::size_t rounds = 9;

using StepChoices = std::map<std::string, Choice>;  ///< by tuning_text()

Engine engine_with(const ModelOptions& options, std::int64_t batch, StepChoices choices) {
  ModelOptions model = options;
  model.engine.fusion.choose = [choices = std::move(choices)](const Region& region, Choice& choice) {
    if (const auto found = choices.find(tuning_text(region)); found != choices.end()) choice = found->second;
  };
  return load_engine(model, batch * (prompt_tokens + new_tokens), 512, batch);
}

double quantile_of(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

struct StepRatio {
  double ratio, noise;
};

/// The median, and twice its own deviation, as of a normal distribution with these quartiles (select/tune/meter.cpp).
StepRatio ratio_of(std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const double half_quartiles = (quantile_of(ratios, 0.75) - quantile_of(ratios, 0.25)) / 2;
  return {quantile_of(ratios, 0.5), 2 * 1.25 * half_quartiles / 0.67 / std::sqrt(static_cast<double>(ratios.size()))};
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile_of(values, 0.5);
}

bool is_slower_by(double ratio, double noise) { return ratio > 1 + std::max(0.01, noise); }

}  // namespace

bool StepComparison::is_slower() const {
  return is_slower_by(step_ratio, step_noise) || is_slower_by(prompt_ratio, prompt_noise);
}

StepComparison compare_steps(const ModelOptions& options, std::int64_t batch, const std::vector<TunedJob>& tuned) {
  StepChoices own, fastest;
  for (const TunedJob& job : tuned) {
    const std::string text = tuning_text(job.job.region);
    own.emplace(text, job.report.tried.front().choice);
    fastest.emplace(text, job.report.choice);
  }
  Engine before = engine_with(options, batch, std::move(own)), after = engine_with(options, batch, std::move(fastest));
  std::vector<double> before_steps, after_steps, before_prompts, after_prompts, step_ratios, prompt_ratios;
  for (std::size_t round = 0; round <= rounds; ++round) {  // the first one warms up
    BatchTimes times[2];
    const bool swapped = round % 2 == 1;  // which one is first takes turns
    for (const bool second : {swapped, !swapped})
      times[second] = time_batch(second ? after : before, prompt_tokens, new_tokens, stop_if_interrupted);
    if (round == 0) continue;
    before_steps.push_back(times[0].decode / new_tokens), after_steps.push_back(times[1].decode / new_tokens);
    before_prompts.push_back(times[0].prefill), after_prompts.push_back(times[1].prefill);
    step_ratios.push_back(times[1].decode / times[0].decode),
        prompt_ratios.push_back(times[1].prefill / times[0].prefill);
  }
  const StepRatio step = ratio_of(step_ratios), prompt = ratio_of(prompt_ratios);
  return {median_of(before_steps),   median_of(after_steps),   step.ratio,   step.noise,
          median_of(before_prompts), median_of(after_prompts), prompt.ratio, prompt.noise};
}

}  // namespace cermet::cli
