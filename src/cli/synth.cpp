// cermet synth: a random checkpoint of any supported configuration, so that benchmarks need no download.
#include "model/synth.hpp"

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/verb.hpp"

namespace cermet::cli {
namespace {

struct Options {
  SynthOptions synth;
  std::string config, out;
  int threads = 0;
};

void synthesize(Console& console, const Options& options) {
  SynthOptions synth = options.synth;
  synth.config_file = options.config;
  synth.out = options.out;
  synth.cancelled = &interrupted();
  ThreadPool pool(options.threads);
  SynthResult result;
  {
    Progress progress("writing " + options.out);
    synth.on_progress = [&](std::int64_t done, std::int64_t total) { progress.update(done, total); };
    result = write_random_checkpoint(synth, pool);
  }
  if (console.json()) {
    console.write_json({{"out", options.out},
                        {"tensors", result.tensors},
                        {"parameters", result.parameters},
                        {"bytes", result.bytes},
                        {"files", result.files},
                        {"seed", synth.seed}});
    return;
  }
  console.print("{}: {} parameters in {} tensors, {} in {} files\n", options.out, count_text(static_cast<double>(result.parameters)), result.tensors,
                bytes_text(static_cast<double>(result.bytes)), result.files);
}

}  // namespace

Verb synth_verb() {
  return {"synth", "a random checkpoint of any supported configuration, streamed to disk",
          "  cermet synth --config models/demo/config.json --out /tmp/random --seed 7\n"
          "  cermet bench model /tmp/random",
          [](CLI::App& app) -> Action {
            const auto options = std::make_shared<Options>();
            app.add_option("--config", options->config, "a config.json; its dtype is that of the weights")->required();
            app.add_option("--out", options->out, "folder to create; it may exist if it is empty")->required();
            app.add_option("--seed", options->synth.seed, "same seed, same bytes")->capture_default_str();
            app.add_option("--max-file-bytes", options->synth.max_file_bytes, "tensor data of one file; a larger tensor gets one of its own")
                ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 50))
                ->capture_default_str();
            app.add_option("--threads", options->threads, "threads; 0 is one for each core")->check(CLI::Range(0, 1024))->capture_default_str();
            return [options](Console& console) { synthesize(console, *options); };
          }};
}

}  // namespace cermet::cli
