// cermet bisect-region: the first launch of a super-kernel whose results differ from those of launches one by one.
#include "runtime/bisect_region.hpp"

#include "cli/explain/bisect_dump.hpp"
#include "cli/graph_file.hpp"
#include "cli/model_options.hpp"
#include "cli/onnx_model.hpp"
#include "cli/ui/interrupt.hpp"
#include "runtime/super_kernel/super_region.hpp"

namespace cermet::cli::bisect_region_verb {
namespace {

struct Options {
  ModelOptions model;
  OnnxOptions onnx;
  std::string ids;
  RegionBisectOptions bisect;
  std::string dump;
};

/// On a GPU regions run as one launch only where somebody wants them whatever they cost.
SuperKernelSelection selection_of(const ModelOptions& options) {
  SuperKernelSelection selection = options.engine.fusion.super_kernel;
  if (selection.select.empty() && !is_graph(options.model)) selection.select = "decode";
  const SuperKernelOptions parsed = SuperKernelOptions::parse(selection.options);
  if (!selection.select.empty() && options.engine.device != "cpu" && !parsed.profile && !parsed.debug_sync_all &&
      parsed.width == 0)
    selection.options += selection.options.empty() ? "profile=1" : ":profile=1";
  return selection;
}

/// The last pass over the ids: of one token where there are several.
RegionBisectReport bisect_checkpoint(Options options) {
  const std::vector<std::int32_t> ids = ids_option(options.ids);
  check_ids(ids, load_config(options.model.model).vocab_size);  // before any weight is read
  options.model.engine.fusion.super_kernel = selection_of(options.model);
  Engine engine = load_engine(options.model, static_cast<std::int64_t>(ids.size()));
  require(engine.computes(), "--device: expected one that computes, found {}", options.model.engine.device);
  const std::span<const std::int32_t> all(ids);
  const auto forward = [&](std::span<const std::int32_t> part) {
    stop_if_interrupted();
    if (!part.empty()) engine.prefill(0, part);
  };
  const auto prepare = [&] {
    engine.reset(0);
    forward(all.first(all.size() - 1));
  };
  const auto run = [&] { forward(all.last(1)); };
  prepare();
  run();
  return bisect_region(engine.last_executable(), {prepare, run}, options.bisect);
}

RegionBisectReport bisect_graph(const OnnxOptions& options, const RegionBisectOptions& bisect) {
  GraphFile file(options);
  require(file.context().computes(), "--device: expected one that computes, found {}", options.device);
  const auto run = [&] { stop_if_interrupted(), file.session().run(); };
  run();
  return bisect_region(file.session().executable(), {[] {}, run}, bisect);
}

/// All parts of an ONNX file that have a region, up to the first fault.
RegionBisectReport bisect_onnx(const OnnxOptions& options, const RegionBisectOptions& bisect) {
  OnnxModel model(options);
  require(model.context().computes(), "--device: expected one that computes, found {}", options.device);
  const auto run = [&] { stop_if_interrupted(), model.run(); };
  run();
  RegionBisectReport report;
  for (const onnx::PartInfo& part : model.compiled().parts()) {
    Executable* const executable = part.session ? &const_cast<Session*>(part.session)->executable() : nullptr;
    const SuperFormation* const formed = executable ? executable->super_kernels() : nullptr;
    if (report.fault || !formed || formed->regions.empty()) continue;
    const RegionBisectReport found = bisect_region(*executable, {[] {}, run}, bisect);
    report = {report.regions + found.regions, report.launches + found.launches, report.runs + found.runs, found.fault};
  }
  require(report.regions > 0, "bisect-region: expected a run with a region of a super-kernel, found none");
  return report;
}

RegionBisectReport bisect_model(const Options& options) {
  if (!is_onnx(options.model.model) && !is_graph(options.model.model)) return bisect_checkpoint(options);
  OnnxOptions onnx = options.onnx;
  onnx.model = options.model.model;
  onnx.device = options.model.engine.device;
  onnx.threads = options.model.engine.threads;
  onnx.mode = options.model.mode;
  onnx.super_kernel = selection_of(options.model);
  return is_graph(onnx.model) ? bisect_graph(onnx, options.bisect) : bisect_onnx(onnx, options.bisect);
}

void print_text(const RegionBisectReport& report, Console& console) {
  Table table;
  table.row({"regions", fmt::format("{}, of {} launches; {} runs", report.regions, report.launches, report.runs)});
  if (!report.fault) {
    table.row({"culprit", "none: every launch leaves the bits that it leaves one by one"});
  } else {
    const RegionFault& fault = *report.fault;
    table.row({"culprit", fmt::format("launch {} of super-kernel '{}': {}{}{}", fault.launch, fault.super_kernel,
                                      fault.scope, fault.scope.empty() ? "" : " ", fault.kernel)});
    table.row({"result",
               fmt::format("{}: {} of {} elements differ; the first, {}: expected {:.9g}, found {:.9g}", fault.result,
                           fault.differing, fault.elements, fault.element, fault.expected, fault.found)});
  }
  console.write(table.to_string());
}

void bisect(Options options, Console& console) {
  std::optional<RegionDump> dump;
  if (!options.dump.empty()) {
    dump.emplace(options.dump);
    options.bisect.keep = [&](const RegionResults& results) { dump->keep(results); };
  }
  const RegionBisectReport report = bisect_model(options);
  if (dump) dump->commit();
  if (!console.json()) return print_text(report, console);
  Json json{{"model", options.model.model},
            {"device", options.model.engine.device},
            {"regions", report.regions},
            {"launches", report.launches},
            {"runs", report.runs}};
  json["culprit"] = nullptr;
  if (const auto& fault = report.fault)
    json["culprit"] = {{"super_kernel", fault->super_kernel},
                       {"launch", fault->launch},
                       {"scope", fault->scope},
                       {"kernel", fault->kernel},
                       {"result", fault->result},
                       {"differing", fault->differing},
                       {"elements", fault->elements},
                       {"element", fault->element},
                       {"expected", fault->expected},
                       {"found", fault->found}};
  console.write_json(json);
}

}  // namespace

Verb verb() {
  return {"bisect-region", "find the launch of a super-kernel that differs",
          "cermet bisect-region models/demo --ids 497,2314 --super-kernel layer\ncermet bisect-region step.graph "
          "--device cuda --repeat 20 --json\n"
          "cermet bisect-region step.graph --device cuda --dump results",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            const ModelVerb verb{.inputs = any_input};
            declare_model(parser, options->model, verb);
            parser.section("Prompt", checkpoint_input);
            parser.option("--ids <IDS>", options->ids,
                          "token ids, of which the last is the pass that is looked at: 497,2314");
            parser.section("Options");
            parser.option("--repeat", options->bisect.repeat, "runs after every launch: races do not show every time")
                .range(1, 10000)
                .show_default();
            parser.flag("--ends", options->bisect.ends,
                        "compare after the last launch of each region alone, which a GPU links once then");
            parser.option("--dump <DIR>", options->dump,
                          "folder to make, with the results of every launch that is compared as .npy files");
            declare_model_options(parser, options->model, verb);
            declare_onnx_options(parser, options->onnx);
            declare_advanced_options(parser, options->model, verb);
            return [options, given = parser.given()](Console& console) {
              given->check_input(input_of(options->model.model), options->model.model);
              bisect(*options, console);
            };
          }};
}

}  // namespace cermet::cli::bisect_region_verb
