// cermet tune op: the fastest kernel and configuration for calls of an operator, measured and stored.
#include "cli/model_options.hpp"
#include "cli/op_call.hpp"
#include "cli/tune/tune_run.hpp"
#include "op/schema/region_text.hpp"

namespace cermet::cli::tune_op_verb {
namespace {

struct Options {
  TuneRunOptions run;
  std::string op, constants, device = "cpu";
  std::vector<std::string> shapes;
  std::int64_t tokens = 512;
  int threads = 0;
};

void tune(Console& console, const Options& options) {
  require(!options.shapes.empty() || is_region_text(options.op),
          "--shape: expected operand types, as in --shape \"x=bf16[8,4096]\", found none");
  std::vector<std::string> shapes = options.shapes;
  if (shapes.empty()) shapes.emplace_back();
  const Context context({options.device, options.threads});
  std::vector<TuneJob> jobs;
  for (const std::string& shape : shapes) {
    Region region = parse_region_call(options.op, shape, options.tokens);
    mark_constants(region, options.constants);
    region.set_target(context.target());
    add_job(jobs, {.region = std::move(region)});
  }
  run_tuning(console, context, jobs, options.run);
}

}  // namespace

Verb verb() {
  return {"tune op", "find and store the fastest kernel for calls of an operator",
          "cermet tune op linear --shape 'x=bf16[16,4096] w=bf16[4096,4096]' 'x=bf16[512,4096] w=bf16[4096,4096]' "
          "--device cuda --budget 60\n"
          "cermet tune op rms_norm --shape 'f32[64,2048] f32[2048]' --search exhaustive --dry --json",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser
                .option("NAME <OPERATOR>", options->op,
                        "an operator, or a region, as timelines and `bench model --plan --json` print it")
                .required();
            parser.option("--shape,--shapes <CALL>", options->shapes,
                          "one call or more: operand types by name or in order, attributes as name=value");
            parser.option("--tokens", options->tokens, "largest value of a symbolic dimension")
                .range(1, 1 << 30)
                .show_default();
            parser.option("--constant <NAMES>", options->constants,
                          "operands known before the first run ($2 of a region), or none; by default those that a "
                          "kernel would prepack");
            declare_tune_options(parser, options->run);
            declare_device(parser, options->device, options->threads);
            return [options](Console& console) { tune(console, *options); };
          }};
}

}  // namespace cermet::cli::tune_op_verb
