// What `cermet tune op`, `tune model` and `tune graph` share: regions are tuned one after the other within a budget,
// and stored as they are done.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "runtime/context.hpp"
#include "select/tune/job.hpp"

namespace cermet::cli {

struct TuneRunOptions {
  std::string search = "bayes", paging = "scattered";
  double budget = 60, seconds = 0.02;
  std::int64_t candidates = 0;
  std::uint64_t seed = 0;
  bool dry = false;
};

/// Declares --budget, --search, --candidates, --seconds, --seed, --paging and --dry.
void declare_tune_options(Parser& parser, TuneRunOptions& options);

/// Adds a job, or where there is one of the same region (by tuning_text()) already, its launches to that.
void add_job(std::vector<TuneJob>& jobs, TuneJob job);
/// Sets `least` of jobs that are alike but for the symbols' maxima: one begins where the smaller one ends.
void set_ranges(std::vector<TuneJob>& jobs);

/// A job that was done.
struct TunedJob {
  TuneJob job;
  TuneReport report;
};
/// Seconds of a decode step and of a prompt of a model with all tuned choices, and without. A ratio is tuned / untuned,
/// the median of rounds in turn; `noise` is what it may be off by.
struct StepComparison {
  double untuned_step = 0, tuned_step = 0, step_ratio = 1, step_noise = 0;
  double untuned_prompt = 0, tuned_prompt = 0, prompt_ratio = 1, prompt_noise = 0;

  /// Slower beyond noise, and by more than 1 %.
  bool is_slower() const;
};
using TuneFinish = std::function<StepComparison(const std::vector<TunedJob>&)>;

/// Tunes the jobs, prints each as it is done, and stores it in Tuning::process()'s database unless --dry. Each gets its
/// share of what is left of the budget. After Ctrl-C the job at hand is decided by what was measured, and
/// Error(cancelled) says how many are stored. `finish` may be empty; where it finds the whole slower, the choices
/// without tuning are stored in their place.
void run_tuning(Console& console, const Context& context, const std::vector<TuneJob>& jobs,
                const TuneRunOptions& options, const TuneFinish& finish = {});

}  // namespace cermet::cli
