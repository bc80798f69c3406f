// cermet tune model: every region of a model's passes.
#include "cli/model_options.hpp"
#include "cli/tune_run.hpp"

namespace cermet::cli::tune_model_verb {
namespace {

struct Options {
  ModelOptions model;
  TuneRunOptions run;
  std::int64_t batch = 1;
};

/// The regions of all passes. Compiled for a device on which nothing is computed where that has the same kernels, so that no weight is read.
std::vector<TuneJob> jobs_of(const Options& options) {
  std::vector<TuneJob> jobs;
  ModelOptions model = options.model;
  if (model.device == "cpu") model.device = "null";
  model.fusion.choose = [&](const Region& region, Choice&) { add_job(jobs, {.region = region}); };
  load_engine(model, 0, 512, options.batch);
  return jobs;
}

void tune(Console& console, const Options& options) {
  require(!options.model.device.starts_with("null"), "--device: expected one that computes, found {}", options.model.device);
  std::vector<TuneJob> jobs = jobs_of(options);
  const Context context({options.model.device, options.model.threads});
  for (TuneJob& job : jobs) job.region.set_target(context.target());
  set_ranges(jobs);
  run_tuning(console, context, jobs, options.run);
}

}  // namespace

Verb verb() {
  return {"tune model", "the same for everything that a model launches: one token, a few, and many",
          "  cermet tune model models/demo --budget 60\n  cermet tune model FOLDER --device cuda --batch 16", [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            declare_model_options(parser, options->model);
            parser.option("--batch", options->batch, "sequences of a pass").range(1, 4096).show_default();
            declare_tune_options(parser, options->run);
            return [options](Console& console) { tune(console, *options); };
          }};
}

}  // namespace cermet::cli::tune_model_verb
