// cermet quantize: quantizes a 16-bit checkpoint and reports what that costs; --check verifies a quantized one.
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/quantize_run.hpp"
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
                             {.cancelled = &interrupted(), .on_progress = [&](std::int64_t done, std::int64_t total) { progress.update(done, total); }});
  }
  if (console.json() && result.ok())
    console.write_json({{"folder", options.check}, {"tensors", result.tensors}, {"modules", result.modules}, {"codes", result.codes}, {"violations", 0}});
  if (!console.json())
    for (const std::string& line : result.violations) console.print("{}\n", line);
  console.flush();
  if (!result.ok())
    fail(Status::invalid_file, "{}: expected every tensor as its policy says, found {} violations: {}", options.check, result.violations.size(),
         result.violations.front());
  if (!console.json())
    console.print("{}: {} tensors, {} quantized modules, {} quantized values: all as the policy says\n", options.check, result.tensors, result.modules,
                  result.codes);
}

Action declare(Parser& parser) {
  const auto o = std::make_shared<QuantizeCommand>();
  parser.option("MODEL", o->model, "folder of a checkpoint in f32, bf16 or f16, with its tokenizer.json");
  parser.option(
      "--calib", o->calibration,
      "prompts to calibrate on: .jsonl with \"text\", \"prompt\", \"messages\" or \"ids\" in every line, or text, cut into pieces of --length tokens");
  parser.option("--tokenizer", o->tokenizer, "folder of another model whose tokenizer.json reads prompts and --heldout");
  parser.option("--out", o->out, "folder to create; an interrupted run is resumed from OUT.partial beside it");
  parser.option("--policy", o->policy, "rules `PATTERN = SCHEME` by module name, the first that matches decides; see --print-policy for the default");
  parser.option("--scheme", o->scheme, "one scheme for everything but routers and head, in place of a policy");
  parser.option("--target-ppl", o->target,
                "a rise of perplexity such as +0.5%: schemes are chosen per layer so that perplexity on --heldout stays within it at the least predicted time");
  parser.flag("--print-policy", o->print_policy, "print the policy (the default, or that of --policy or --scheme) and end");
  parser.option("--anti-outlier", o->anti_outlier, "none, clamp, smooth, both, or auto, which keeps what lowers a layer's error on held-out prompts")
      .show_default();
  parser.option("--clamp-percentile", o->clamp_percentile, "of absolute activations: where clamping begins").show_default();
  parser.option("--samples", o->prompts.samples, "at most this many prompts, spread evenly over the file").range(1, 1 << 20).show_default();
  parser.option("--length", o->prompts.length, "at most this many tokens of a prompt").range(2, 1 << 20).show_default();
  parser.flag("--prompt-per-line", o->prompts.prompt_per_line, "each line of a text file is a prompt");
  parser.option("--heldout", o->heldout, "UTF-8 text that calibration does not see: perplexity before and after is measured on it");
  parser.option("--heldout-chars", o->heldout_characters, "use its first this many characters only; 0: all").range(0, 1 << 30).show_default();
  parser.option("--format", o->format, "compressed-tensors, or modelslim, Ascend's descriptor").show_default();
  parser.flag("--plain-experts", o->plain_experts, "do not pack int8 weights of experts: vLLM needs that for int8 inputs, transformers 5 cannot load it");
  parser.option("--max-file-bytes", o->max_file_bytes, "tensor data of one file; a larger tensor gets one of its own")
      .range(std::int64_t{1}, std::int64_t{1} << 50)
      .show_default();
  parser.option("--device", o->device, "where layers run: cpu, or cuda").show_default();
  parser.option("--threads", o->threads, "threads; 0 is one for each core").range(0, 1024).show_default();
  parser.flag("--no-speed", o->no_speed, "leave the speeds out of the report");
  parser.flag("--restart", o->restart, "start over, discarding the layers that an interrupted run left in OUT.partial");
  parser.option("--check", o->check, "verify that every tensor of a quantized folder obeys its policy; one line for each that does not");
  return [o](Console& console) {
    if (o->print_policy) console.write(policy_option(*o).text());
    else if (!o->check.empty()) check_folder(*o, console);
    else run_quantize(*o, console);
  };
}

}  // namespace

Verb verb() {
  return {"quantize", "quantize a checkpoint to int8 or fp8, with a report on quality, size and speed; or check a quantized one",
          "  cermet quantize models/demo --calib models/demo/calibration.jsonl --out /tmp/demo-int8 --heldout models/demo/heldout.txt --heldout-chars 260000\n"
          "  cermet quantize models/demo --calib models/demo/calibration.jsonl --out /tmp/demo-w8 --scheme w8a16\n"
          "  cermet quantize --check /tmp/demo-int8\n"
          "  cermet quantize --print-policy",
          declare};
}

}  // namespace cermet::cli::quantize_verb
