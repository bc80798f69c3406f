// Whether what was tuned pays in a model: its passes with all tuned choices and without, in turn.
#pragma once

#include <vector>

#include "cli/model_options.hpp"
#include "cli/tune/tune_run.hpp"

namespace cermet::cli {

/// Seconds of a decode step and of a prompt. A ratio is tuned / untuned, the median of rounds in turn; `noise` is what
/// it may be off by.
struct StepComparison {
  double untuned_step = 0, tuned_step = 0, step_ratio = 1, step_noise = 0;
  double untuned_prompt = 0, tuned_prompt = 0, prompt_ratio = 1, prompt_noise = 0;

  /// Slower beyond noise, and by more than 1 %.
  bool is_slower() const;
};

/// Loads the model twice and runs both in turn, on a GPU as captured graphs: with the choices of `tuned`, and with
/// those that they replace.
StepComparison compare_steps(const ModelOptions& options, std::int64_t batch, const std::vector<TunedJob>& tuned);

}  // namespace cermet::cli
