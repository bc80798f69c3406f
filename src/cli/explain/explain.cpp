// cermet explain: what the compiler makes of a model, as a page, as text or as JSON.
#include <algorithm>

#include "base/log.hpp"
#include "cli/explain/explain_data.hpp"
#include "cli/explain/explain_page.hpp"
#include "cli/explain/explain_text.hpp"
#include "cli/graph_file.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/text_output.hpp"

namespace cermet::cli::explain_verb {
namespace {

constexpr int measured_runs = 5;
constexpr std::size_t most_parts = 32;  ///< of a model whose loops go on as random elements say

struct Options {
  ModelOptions model;
  OnnxOptions onnx;
  std::string output, compare = "none";
  bool text = false, measure = false;
};

/// The graphs of a model, compiled in one mode.
struct Compiled {
  std::vector<CompileRecord> records;
  std::vector<std::string> names;  ///< by record
  std::vector<std::vector<double>>
      measured;  ///< by record and step: seconds of one run; empty where nothing was measured
};

/// Where nothing is measured nothing is computed, and no weight is read: a null device has the kernels of the one that
/// was asked for.
std::string compile_device(const std::string& device, bool measure) {
  return measure || device != "cpu" ? device : "null";
}

/// By part and step, the least seconds of several runs: what else the machine does only makes them more.
std::vector<std::vector<double>> measure(OnnxModel& model) {
  std::vector<Executable*> parts;
  for (const onnx::PartInfo& part : model.compiled().parts())
    if (part.session) parts.push_back(&const_cast<Session*>(part.session)->executable());
  std::vector<std::vector<double>> least;
  for (Executable* part : parts) {
    part->set_timing(true);
    least.emplace_back(part->steps().size());
  }
  for (int run = 0; run < measured_runs; ++run) {
    model.run();
    for (std::size_t p = 0; p < parts.size(); ++p)
      for (const LaunchTime& launch : parts[p]->last_launches())
        if (double& seconds = least[p][launch.step]; run == 0 || launch.seconds < seconds) seconds = launch.seconds;
  }
  return least;
}

/// What is asked for of a model that runs on tensors.
OnnxOptions onnx_options(const Options& options, const std::string& mode, const std::string& device) {
  OnnxOptions onnx = options.onnx;
  onnx.model = options.model.model;
  onnx.device = device;
  onnx.threads = options.model.engine.threads;
  onnx.mode = mode;
  onnx.super_kernel = options.model.engine.fusion.super_kernel;
  onnx.most_parts = most_parts;
  return onnx;
}

Compiled compile_onnx_model(const Options& options, const std::string& mode, const std::string& device) {
  Compiled compiled;
  OnnxModel model(onnx_options(options, mode, device), {.records = &compiled.records});
  model.run();
  if (const std::optional<std::string> missing = model.compiled().missing_elements()) {
    if (options.model.engine.device == "cpu" && device != "cpu")
      return compile_onnx_model(options, mode, "cpu");  // which computes them
    log().warn("{}: elements of '{}' say what follows: only the first {} parts are explained", options.model.model,
               *missing, model.compiled().parts().size());
  }
  for (const onnx::PartInfo& part : model.compiled().parts())
    if (part.session) compiled.names.push_back(fmt::format("part {}", compiled.names.size() + 1));
  require(!compiled.names.empty(), "{}: expected something to launch, found a model whose results are known",
          options.model.model);
  if (compiled.names.size() == 1) compiled.names = {"the model"};
  if (!options.measure) return compiled;
  compiled.measured = measure(model);
  return compiled;
}

Compiled compile_graph_file(const Options& options, const std::string& mode) {
  Compiled compiled;
  const GraphFile file(onnx_options(options, mode, compile_device(options.model.engine.device, options.measure)),
                       {.records = &compiled.records});
  compiled.names = {compiled.records.front().graph.name};
  return compiled;
}

Compiled compile_checkpoint(const Options& options, const std::string& mode) {
  Compiled compiled;
  ModelOptions model = options.model;
  model.engine.device = compile_device(options.model.engine.device, false);
  model.mode = mode;
  model.engine.fusion.records = &compiled.records;
  const Engine engine = load_engine(model);
  for (const CompileRecord& record : compiled.records) {
    const std::int64_t tokens = record.maximum[Symbol("T")];
    compiled.names.push_back(tokens == 1 ? "decode: 1 token" : fmt::format("up to {} tokens", tokens));
  }
  return compiled;
}

Json explain_model(const Options& options) {
  const std::string mode = options.model.mode.empty() ? "full" : options.model.mode;
  fusion_mode_named("--mode", mode);
  fusion_mode_named("--compare", options.compare);
  const bool onnx = is_onnx(options.model.model);
  const auto compiled = [&](const std::string& in) {
    return onnx ? compile_onnx_model(options, in, compile_device(options.model.engine.device, options.measure))
           : is_graph(options.model.model) ? compile_graph_file(options, in)
                                           : compile_checkpoint(options, in);
  };
  const Compiled after = compiled(mode), before = compiled(options.compare);
  CERMET_ASSERT(before.names.size() == after.names.size());
  Json data{{"model", options.model.model}, {"device", options.model.engine.device}, {"graphs", Json::array()}};
  for (std::size_t g = 0; g < after.names.size(); ++g) {
    const auto plan = [&](const Compiled& from) {
      return plan_json(from.records[g], from.measured.empty() ? std::vector<double>() : from.measured[g]);
    };
    data["graphs"].push_back({{"name", after.names[g]}, {"before", plan(before)}, {"after", plan(after)}});
  }
  return data;
}

void explain(const Options& options, Console& console) {
  if (!options.output.empty()) check_text_output(console, options.output);
  require(options.output != "-" || !options.text,
          "-o -: expected no --text with it, which prints to standard output as well, found --text");
  const Json data = explain_model(options);
  if (!options.output.empty()) {
    const bool is_file = write_text_output(console, options.output, explain_page(data)),
               is_all = !console.json() && !options.text;
    if (is_all && is_file) console.print("{}\n", options.output);
    if (is_all) return;
  }
  if (console.json()) return console.write_json(data);
  for (const Json& graph : data["graphs"]) console.write(explain_text(graph));
}

}  // namespace

Verb verb() {
  return {
      "explain", "show what the compiler makes of a model",
      "cermet explain models/demo_onnx/classifier.onnx\n"
      "cermet explain models/demo_onnx/classifier.onnx -o page.html\n"
      "cermet explain models/demo --mode pattern --compare none --device null:sm_90",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        const ModelVerb verb{.inputs = any_input, .decodes = true};
        declare_model(parser, options->model, verb);
        parser.section("Output");
        parser.option("-o,--output <FILE.html>", options->output, "page to write: one file, which needs no network");
        parser.flag("--text", options->text,
                    "print a line for each block, totals, and reasons by count; the default without -o and --json");
        parser.option("--compare <MODE>", options->compare, "mode to compare with")
            .values({"none", "pattern", "published", "full"})
            .show_default();
        parser.section("Output", onnx_input);
        parser.flag("--measure", options->measure,
                    "run the model and show what every block took; else nothing is computed, and no weight is read");
        declare_model_options(parser, options->model, verb);
        declare_onnx_options(parser, options->onnx);
        declare_advanced_options(parser, options->model, verb);
        return [options, given = parser.given()](Console& console) {
          given->check_input(input_of(options->model.model), options->model.model);
          explain(*options, console);
        };
      }};
}

}  // namespace cermet::cli::explain_verb
