// cermet bisect: which rewrite rule or fused block changes a result of an ONNX file.
#include "runtime/bisect.hpp"

#include "cli/model_options.hpp"
#include "cli/onnx_model.hpp"
#include "cli/ui/interrupt.hpp"
#include "format/element.hpp"

namespace cermet::cli::bisect_verb {
namespace {

struct Options {
  OnnxOptions onnx;
  double tolerance = 1e-3;
};

RunValue widened(std::string name, const TensorView& view) {
  RunValue value{std::move(name), {}};
  for (std::int64_t i = 0; i < view.elements(); ++i)
    value.elements.push_back(format::load_element(view.data, view.dtype, i));
  return value;
}

/// Results of the model, and inner values that were asked for.
std::vector<RunValue> run_once(const OnnxOptions& options, const FusionOptions& fusion) {
  stop_if_interrupted();
  OnnxModel model(options, fusion);
  model.run();
  std::vector<RunValue> values;
  const std::vector<std::string> names = model.compiled().output_names();
  for (std::size_t i = 0; i < names.size(); ++i) values.push_back(widened(names[i], model.compiled().host_output(i)));
  for (const onnx::PartInfo& part : model.compiled().parts())
    for (const std::string& name : fusion.changes->keep)
      if (part.session && part.session->has_output(name))
        values.push_back(widened(name, const_cast<Session*>(part.session)->host_output(name)));
  return values;
}

Json to_json(const WorstElement& worst) {
  return {{"value", worst.value},
          {"index", worst.index},
          {"expected", worst.expected},
          {"found", worst.found},
          {"error", worst.error}};
}

std::string to_text(const WorstElement& worst) {
  return fmt::format("'{}', element {}: expected {:.9g}, found {:.9g} (error {:.2g})", worst.value, worst.index,
                     worst.expected, worst.found, worst.error);
}

void print_text(const BisectReport& report, double tolerance, Console& console) {
  Table table;
  table.row({"changes", fmt::format("{} rule applications and blocks, {} runs", report.changes, report.runs)});
  table.row({"all of them", to_text(report.whole)});
  if (!report.culprit) {
    table.row(
        {"culprit", fmt::format("none: every result is within {:g} of what single operators compute", tolerance)});
  } else {
    const Change& change = *report.culprit;
    if (change.rule.empty())
      table.row(
          {"culprit", fmt::format("block {}, change {} of {}", change.text, report.position + 1, report.changes)});
    else
      table.row({"culprit", fmt::format("rule {} at {}, change {} of {}", change.rule, change.text, report.position + 1,
                                        report.changes)});
    table.row({"with it", to_text(report.with)});
    if (report.block) table.row({"the block", to_text(*report.block) + ", on the same operands"});
  }
  console.write(table.to_string());
}

void bisect_model(const Options& options, Console& console) {
  const FusionMode mode = options.onnx.mode.empty() ? FusionMode::full : fusion_mode_named("--mode", options.onnx.mode);
  const Context context(ContextOptions{.device = options.onnx.device, .threads = 1});
  require(context.computes(), "--device: expected one that computes, found {}", options.onnx.device);
  const BisectReport report = bisect([&](const FusionOptions& fusion) { return run_once(options.onnx, fusion); },
                                     FusionOptions{.mode = mode}, options.tolerance);
  if (!console.json()) return print_text(report, options.tolerance, console);
  Json json{{"model", options.onnx.model},
            {"mode", name_of(mode)},
            {"tolerance", options.tolerance},
            {"changes", report.changes},
            {"runs", report.runs}};
  json["whole"] = to_json(report.whole);
  json["culprit"] = nullptr;
  if (report.culprit) {
    const bool is_rule = !report.culprit->rule.empty();
    json["culprit"] = Json{{is_rule ? "rule" : "block", is_rule ? report.culprit->rule : report.culprit->text},
                           {"position", report.position}};
    if (is_rule) json["culprit"]["at"] = report.culprit->text;
    json["culprit"]["worst"] = to_json(report.with);
    if (report.block) json["culprit"]["alone"] = to_json(*report.block);
  }
  console.write_json(json);
}

}  // namespace

Verb verb() {
  return {
      "bisect", "find the rewrite or fused block that changes a result",
      "cermet bisect FILE.onnx --input x=x.npy --tolerance 1e-4\ncermet bisect models/demo_onnx/classifier.onnx --json",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser.option("MODEL <FILE.onnx>", options->onnx.model, "an ONNX file, or a plan of one").required();
        declare_onnx_options(parser, options->onnx);
        parser.section("Options");
        parser.option("--tolerance", options->tolerance, "largest error of a result, relative to its largest element")
            .range(0.0, 1e6)
            .show_default();
        declare_mode(parser, options->onnx.mode);
        declare_device(parser, options->onnx.device, options->onnx.threads);
        return [options](Console& console) { bisect_model(*options, console); };
      }};
}

}  // namespace cermet::cli::bisect_verb
