// cermet explain op: which kernel computes a call, and why.
#include "base/text.hpp"
#include "cli/explain_selection.hpp"
#include "cli/op_call.hpp"
#include "cli/verb.hpp"
#include "op/region_text.hpp"
#include "runtime/context.hpp"

namespace cermet::cli::explain_op_verb {
namespace {

struct Options {
  std::string op, shape, constants, output, device = "cpu";
  std::int64_t tokens = 512;
  int threads = 0;
};

void explain(Console& console, const Options& options) {
  require(!options.shape.empty() || is_region_text(options.op), "--shape: expected operand types of {}, found none", quote(options.op));
  Region region = parse_region_call(options.op, options.shape, options.tokens);
  mark_constants(region, options.constants);
  const Context context({options.device, options.threads});
  region.set_target(context.target());
  print_selection(console, region, context.pool().size(), options.output);
}

}  // namespace

Verb verb() {
  return {"explain op",
          "which kernel computes a call, and why: every candidate with its decline or its times, modelled and measured, and what the device's limits allow",
          "  cermet explain op linear --shape 'x=bf16[8,2048] w=bf16[8192,2048]'\n"
          "  cermet explain op rms_norm --shape 'bf16[T,2048] - eps=1e-5' --tokens 16\n"
          "  cermet explain op linear --shape 'x=bf16[8,2048] w=bf16[8192,2048]' --device null:sm_90\n"
          "  cermet explain op linear --shape 'x=bf16[T,4096] w=bf16[4096,4096]' --tokens 4096 --device null:sm_90 -o linear.svg\n"
          "  cermet explain op --device null:sm_90 '{n0 = rms_norm($0: f32[1, 4096], $1: f32[4096]); n1 = linear(strict n0, $2: bf16[6144, 4096])} anchor n1 "
          "-> n1'",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("NAME", options->op, "an operator, or a region, as timelines and `bench model --plan --json` print it").required();
            parser.option("--shape", options->shape, "of an operator: operand types by name or in order, attributes as name=value");
            parser.option("-o,--output", options->output, "an SVG to write: times of the candidates over a symbolic dimension up to --tokens, and the limit");
            parser.option("--constant", options->constants,
                          "operands known before the first run ($2 of a region of several operators), or none; by default those that a kernel would prepack");
            parser.option("--tokens", options->tokens, "largest value of a symbolic dimension").range(1, 1 << 30).show_default();
            parser.option("--device", options->device, "cpu, cuda, or null:sm_90 for such a GPU without one").show_default();
            parser.option("--threads", options->threads, "threads of the CPU; 0 is one for each core").range(0, 1024);
            return [options](Console& console) { explain(console, *options); };
          }};
}

}  // namespace cermet::cli::explain_op_verb
