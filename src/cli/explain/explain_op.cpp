// cermet explain op: which kernel computes a call, and why.
#include "api/schema.hpp"
#include "cli/explain/explain_selection.hpp"
#include "cli/model_options.hpp"
#include "cli/op_call.hpp"
#include "cli/ops_space.hpp"
#include "cli/verb.hpp"
#include "op/schema/region_text.hpp"
#include "runtime/context.hpp"

namespace cermet::cli::explain_op_verb {
namespace {

struct Options {
  std::string op, shape, constants, output, device = "cpu";
  std::int64_t tokens = 512;
  int threads = 0;
  bool space = false;
};

void explain(Console& console, const Options& options) {
  const bool is_example = options.shape.empty() && !is_region_text(options.op);
  Region region = parse_region_call(
      options.op, is_example ? api::example_call(api::operator_named(options.op)) : options.shape, options.tokens);
  mark_constants(region, options.constants);
  const Context context({options.device, options.threads});
  region.set_target(context.target());
  if (!options.space) return print_selection(console, region, context.pool().size(), options.output);
  require(options.output.empty(), "--output: expected no --space with it, found both");
  print_spaces(console, region, context.pool().size());
}

}  // namespace

Verb verb() {
  return {"explain op", "show which kernel computes a call, and why",
          "cermet explain op linear --shape 'x=bf16[8,2048] w=bf16[8192,2048]'\n"
          "cermet explain op rms_norm --shape 'bf16[T,2048] - eps=1e-5' --tokens 16\n"
          "cermet explain op linear --shape 'x=bf16[T,4096] w=bf16[4096,4096]' --tokens 4096 --device null:sm_90 -o "
          "linear.svg\n"
          "cermet explain op linear --space\n"
          "cermet explain op '{n0 = rms_norm($0: f32[1, 4096], $1: f32[4096]); n1 = linear(strict n0, $2: bf16[6144, "
          "4096])} anchor n1 -> n1'",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser
                .option("NAME <OPERATOR>", options->op,
                        "an operator, or a region, as timelines and `bench model --plan --json` print it")
                .required();
            parser
                .option("--shape <CALL>", options->shape, "operand types by name or in order, attributes as name=value")
                .default_text("the example of `cermet ops NAME`");
            parser.option("--tokens", options->tokens, "largest value of a symbolic dimension")
                .range(1, 1 << 30)
                .show_default();
            parser.option("--constant <NAMES>", options->constants,
                          "operands known before the first run ($2 of a region), or none; by default those that a "
                          "kernel would prepack");
            parser.option("-o,--output <FILE.svg>", options->output,
                          "plot of the candidates' times over a symbolic dimension up to --tokens");
            parser.flag("--space", options->space,
                        "print which configurations of each kernel a tuner may choose from instead");
            declare_device(parser, options->device, options->threads, "null:sm_90 is such a GPU without one");
            return [options](Console& console) { explain(console, *options); };
          }};
}

}  // namespace cermet::cli::explain_op_verb
