// cermet tune model: every region of a model's passes.
#include "cli/model_options.hpp"
#include "cli/tune/tune_run.hpp"
#include "cli/tune/tune_step.hpp"

namespace cermet::cli::tune_model_verb {
namespace {

struct Options {
  ModelOptions model;
  TuneRunOptions run;
  std::int64_t batch = 1;
};

/// The regions of all passes. Compiled for a device on which nothing is computed where that has the same kernels, so
/// that no weight is read.
std::vector<TuneJob> jobs_of(const Options& options) {
  std::vector<TuneJob> jobs;
  ModelOptions model = options.model;
  if (model.engine.device == "cpu") model.engine.device = "null";
  model.engine.fusion.choose = [&](const Region& region, Choice&) { add_job(jobs, {.region = region}); };
  load_engine(model, 0, 512, options.batch);
  return jobs;
}

void tune(Console& console, const Options& options) {
  require(!options.model.engine.device.starts_with("null"), "--device: expected one that computes, found {}",
          options.model.engine.device);
  std::vector<TuneJob> jobs = jobs_of(options);
  const Context context({options.model.engine.device, options.model.engine.threads});
  for (TuneJob& job : jobs) job.region.set_target(context.target());
  set_ranges(jobs);
  run_tuning(console, context, jobs, options.run,
             [&](const std::vector<TunedJob>& tuned) { return compare_steps(options.model, options.batch, tuned); });
}

}  // namespace

Verb verb() {
  return {"tune model", "tune everything that a model launches",
          "cermet tune model models/demo --budget 60\ncermet tune model models/demo --device cuda --batch 16",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            const ModelVerb verb{.decodes = true};
            declare_model(parser, options->model, verb);
            declare_tune_options(parser, options->run);
            parser.option("--batch", options->batch, "sequences of a pass").range(1, 4096).show_default();
            declare_model_options(parser, options->model, verb);
            declare_advanced_options(parser, options->model, verb);
            return [options](Console& console) { tune(console, *options); };
          }};
}

}  // namespace cermet::cli::tune_model_verb
