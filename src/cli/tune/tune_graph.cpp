// cermet tune graph: every region of an ONNX file, or of a graph's text.
#include <algorithm>

#include "cli/model_options.hpp"
#include "cli/onnx_model.hpp"
#include "cli/tune/tune_run.hpp"
#include "graph/text.hpp"
#include "runtime/session.hpp"

namespace cermet::cli::tune_graph_verb {
namespace {

struct Options {
  OnnxOptions onnx;
  TuneRunOptions run;
  std::int64_t tokens = 512;
};

/// A graph's text, compiled where nothing is computed, so that no weight is needed.
void compile_text(const Options& options, FusionOptions fusion) {
  Context context({options.onnx.device == "cpu" ? "null" : options.onnx.device, options.onnx.threads});
  Graph graph = parse_graph(read_text_file(options.onnx.model));
  SessionOptions session;
  session.fusion = std::move(fusion);
  for (const Value& value : graph.values())
    for (const Dim& dim : value.type.dims)
      for (const Symbol& symbol : dim.symbols()) session.maximum.set(symbol, options.tokens);
  for (const SymbolRange& known : graph.ranges())
    session.maximum.set(known.symbol, std::min(options.tokens, known.range.greatest));
  if (!options.onnx.mode.empty()) session.fusion.mode = fusion_mode_named("--mode", options.onnx.mode);
  const Session compiled(
      std::move(graph), context,
      [](const std::string& name, std::int64_t, const TensorView&) {
        fail(Status::unsupported, "{}: expected a device that reads no weights", name);
      },
      session);
}

void tune(Console& console, const Options& options) {
  std::vector<TuneJob> jobs;
  const FusionOptions fusion{.choose = [&](const Region& region, Choice&) { add_job(jobs, {.region = region}); }};
  if (is_onnx(options.onnx.model)) {
    OnnxOptions onnx = options.onnx;
    if (onnx.device == "cpu") onnx.device = "null";
    OnnxModel model(onnx, fusion);
    model.run();
  } else {
    compile_text(options, fusion);
  }
  const Context context({options.onnx.device, options.onnx.threads});
  for (TuneJob& job : jobs) job.region.set_target(context.target());
  run_tuning(console, context, jobs, options.run);
}

}  // namespace

Verb verb() {
  return {
      "tune graph", "tune every region of an ONNX file or a graph",
      "cermet tune graph models/demo_onnx/classifier.onnx --dim batch=1..8 --budget 20\ncermet tune graph block.graph "
      "--tokens 128 --device cuda",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser.option("FILE", options->onnx.model, "an ONNX file, a plan of one, or a graph as text (FILE.graph)")
            .required();
        declare_tune_options(parser, options->run);
        parser.section("ONNX", onnx_input);
        parser.option("--input <NAME=FILE.npy>", options->onnx.inputs,
                      "an input; NAME=random, or none, makes values up");
        declare_dims(parser, options->onnx);
        parser.option("--rounding <HOW>", options->onnx.rounding, "as for `cermet run`")
            .values({"strict", "fast"})
            .show_default();
        parser.section("Graphs", graph_input);
        parser.option("--tokens", options->tokens, "largest value of every symbol").range(1, 1 << 30).show_default();
        declare_device(parser, options->onnx.device, options->onnx.threads);
        parser.section("Advanced");
        declare_mode(parser, options->onnx.mode);
        return [options, given = parser.given()](Console& console) {
          given->check_input(is_onnx(options->onnx.model) ? onnx_input : graph_input, options->onnx.model);
          tune(console, *options);
        };
      }};
}

}  // namespace cermet::cli::tune_graph_verb
