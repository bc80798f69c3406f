// Whether what was tuned pays in a model: its passes with all tuned choices and without, in turn.
#pragma once

#include <vector>

#include "cli/model_options.hpp"
#include "cli/tune/tune_run.hpp"

namespace cermet::cli {

/// Loads the model twice and runs both in turn, on a GPU as captured graphs: with the choices of `tuned`, and with
/// those that they replace.
StepComparison compare_steps(const ModelOptions& options, std::int64_t batch, const std::vector<TunedJob>& tuned);

}  // namespace cermet::cli
