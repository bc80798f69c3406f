// cermet tune graph: every region of an ONNX file, or of a graph's text.
#include <algorithm>

#include "cli/model_options.hpp"
#include "cli/onnx_model.hpp"
#include "cli/tune_run.hpp"
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
  for (const SymbolRange& known : graph.ranges()) session.maximum.set(known.symbol, std::min(options.tokens, known.range.greatest));
  if (!options.onnx.mode.empty()) session.fusion.mode = fusion_mode_named("--mode", options.onnx.mode);
  const Session compiled(
      std::move(graph), context,
      [](const std::string& name, std::int64_t, const TensorView&) { fail(Status::unsupported, "{}: expected a device that reads no weights", name); },
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
  return {"tune graph", "the same for an ONNX file or a graph's text",
          "  cermet tune graph model.onnx --dim batch=1..8 --device cuda\n  cermet tune graph block.graph --tokens 128 --budget 20",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("FILE", options->onnx.model, "an ONNX file, a plan of one, or a graph as text").required();
            declare_onnx_options(parser, options->onnx);
            parser.option("--tokens", options->tokens, "of a graph's text: largest value of every symbol").range(1, 1 << 30).show_default();
            parser.option("--device", options->onnx.device, "cpu or cuda").show_default();
            parser.option("--threads", options->onnx.threads, "of the CPU; 0 is one for each core").range(0, 1024);
            declare_mode(parser, options->onnx.mode);
            declare_tune_options(parser, options->run);
            return [options](Console& console) { tune(console, *options); };
          }};
}

}  // namespace cermet::cli::tune_graph_verb
