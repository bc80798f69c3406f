// cermet quantize: quantizes a 16-bit checkpoint and reports what that costs; --check verifies a quantized one.
#include "cli/model_options.hpp"
#include "cli/quantize_run.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "cli/verb.hpp"
#include "quant/check.hpp"

namespace cermet::cli::quantize_verb {
namespace {

void check_folder(const QuantizeCommand& options, Console& console) {
  ThreadPool pool(options.threads);
  QuantizedCheck result;
  {
    Progress progress("checking " + options.check);
    result = check_quantized(options.check, pool,
                             {.cancelled = &interrupted(), .on_progress = [&](std::int64_t done, std::int64_t total) {
                                progress.update(done, total);
                              }});
  }
  if (console.json() && result.ok())
    console.write_json({{"folder", options.check},
                        {"tensors", result.tensors},
                        {"modules", result.modules},
                        {"codes", result.quantized},
                        {"violations", 0}});
  if (!console.json())
    for (const std::string& line : result.violations) console.print("{}\n", line);
  console.flush();
  if (!result.ok())
    fail(Status::invalid_file, "{}: expected every tensor as its policy says, found {} violations: {}", options.check,
         result.violations.size(), result.violations.front());
  if (!console.json())
    console.print("{}: {} tensors, {} quantized modules, {} quantized values: all as the policy says\n", options.check,
                  result.tensors, result.modules, result.quantized);
}

void print_policy(const QuantizeCommand& options, Console& console) {
  const std::string text = policy_option(options).text();
  if (console.json()) console.write_json({{"policy", text}});
  else console.write(text);
}

Action declare(Parser& parser) {
  const auto o = std::make_shared<QuantizeCommand>();
  parser.option("MODEL <DIR>", o->model, "folder of a checkpoint in f32, bf16 or f16, with its tokenizer.json");
  parser.section("Input and output");
  parser.option("--calib <FILE>", o->calibration,
                "prompts to calibrate on: .jsonl with \"text\", \"prompt\", \"messages\" or \"ids\" in every line, or "
                "text, cut into pieces of --length tokens");
  parser.option("-o,--output,--out <DIR>", o->out, "folder to create; an interrupted run resumes from DIR.partial");
  parser.option("--format <FORMAT>", o->format, "modelslim is Ascend's descriptor")
      .values({"compressed-tensors", "modelslim"})
      .show_default();
  parser.option("--samples", o->prompts.samples, "at most this many prompts, spread evenly over the file")
      .range(1, 1 << 20)
      .show_default();
  parser.option("--length", o->prompts.length, "at most this many tokens of a prompt").range(2, 1 << 20).show_default();
  parser.flag("--prompt-per-line", o->prompts.prompt_per_line, "each line of a text file is a prompt");
  parser.option("--tokenizer <DIR>", o->tokenizer,
                "folder of another model whose tokenizer.json reads prompts and --heldout");
  parser.flag("--plain-experts", o->plain_experts,
              "do not pack int8 weights of experts: vLLM needs that for int8 inputs, transformers 5 cannot load it");
  parser.option("--max-file-bytes", o->max_file_bytes, "tensor data of one file; a larger tensor gets one of its own")
      .range(std::int64_t{1}, std::int64_t{1} << 50)
      .show_default();
  parser.flag("--restart", o->restart, "start over, without the layers that an interrupted run left in DIR.partial");
  parser.section("Schemes");
  parser.option("--policy <FILE>", o->policy,
                "rules `PATTERN = SCHEME` by module name, the first that matches decides; see --print-policy");
  parser.option("--scheme <SCHEME>", o->scheme, "one scheme for everything but routers and head, instead of a policy")
      .suggests({"w8a16", "w8a8_dynamic", "w8a8_static", "fp8_weight_only", "fp8_dynamic", "fp8_static"});
  parser.option("--target-ppl <RISE>", o->target,
                "choose schemes per layer so that perplexity on --heldout rises by at most this: +0.5%");
  parser.option("--anti-outlier <HOW>", o->anti_outlier, "auto keeps what lowers a layer's error on held-out prompts")
      .values({"none", "clamp", "smooth", "both", "auto"})
      .show_default();
  parser.option("--clamp-percentile", o->clamp_percentile, "percentile of absolute activations where clamping begins")
      .above(50.0, 100.0)
      .show_default();
  parser.section("Report");
  parser.option("--heldout <FILE>", o->heldout, "UTF-8 text to measure perplexity on, before and after");
  parser.option("--heldout-chars", o->heldout_characters, "use its first this many characters only; 0: all")
      .range(0, 1 << 30)
      .show_default()
      .needs("--heldout");
  parser.flag("--no-speed", o->no_speed, "leave the speeds out of the report");
  declare_device(parser, o->device, o->threads, "where layers run");
  parser.section("Instead of quantizing");
  parser.option("--check <DIR>", o->check, "verify that every tensor of a quantized folder obeys its policy");
  parser.flag("--print-policy", o->print_policy,
              "print the policy (the default, or that of --policy or --scheme) and end");
  return [o, given = parser.given()](Console& console) {
    if (o->print_policy) {
      given->check_only("--print-policy", {"--policy", "--scheme"});
      return print_policy(*o, console);
    }
    if (o->check.empty()) return run_quantize(*o, console);
    given->check_only("--check", {"--threads"});
    check_folder(*o, console);
  };
}

}  // namespace

Verb verb() {
  return {"quantize", "quantize a checkpoint to int8 or fp8, or check one",
          "  cermet quantize models/demo --calib models/demo/calibration.jsonl -o /tmp/demo-int8\n"
          "  cermet quantize models/demo --calib models/demo/calibration.jsonl -o /tmp/demo-w8 --scheme w8a16\n"
          "  cermet quantize --check /tmp/demo-int8\n"
          "  cermet quantize --print-policy",
          declare};
}

}  // namespace cermet::cli::quantize_verb
