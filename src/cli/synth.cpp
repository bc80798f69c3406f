// cermet synth: a random checkpoint of any supported configuration, so that benchmarks need no download.
#include "model/synth.hpp"

#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::synth_verb {
namespace {

struct Options {
  SynthOptions synth;
  std::string config, out;
  int threads = 0;
};

void synthesize(Console& console, const Options& options) {
  SynthOptions synth = options.synth;
  synth.config_file = options.config;
  stop_at_own_pace();
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
  console.print("{}: {} parameters in {} tensors, {} in {} files\n", options.out,
                count_text(static_cast<double>(result.parameters)), result.tensors,
                bytes_text(static_cast<double>(result.bytes)), result.files);
}

}  // namespace

Verb verb() {
  return {
      "synth", "write a random checkpoint of any supported configuration",
      "  cermet synth --config models/demo/config.json -o /tmp/random --seed 7\n"
      "  cermet bench model /tmp/random",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser.option("--config <FILE>", options->config, "a config.json; its dtype is that of the weights").required();
        parser.option("-o,--output,--out <DIR>", options->out, "folder to create; it may exist if it is empty")
            .required();
        parser.option("--seed", options->synth.seed, "same seed, same bytes").show_default();
        parser
            .option("--max-file-bytes", options->synth.max_file_bytes,
                    "tensor data of one file; a larger tensor gets one of its own")
            .range(std::int64_t{1}, std::int64_t{1} << 50)
            .show_default();
        parser.option("--threads", options->threads, "threads; 0: one for each core").range(0, 1024).show_default();
        return [options](Console& console) { synthesize(console, *options); };
      }};
}

}  // namespace cermet::cli::synth_verb
