#include "cli/onnx_model.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <random>

#include "base/log.hpp"
#include "cli/bench/result_files.hpp"
#include "cli/model_files.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "graph/super_kernel_options.hpp"
#include "io/npy.hpp"
#include "jit/cache.hpp"
#include "onnx/plan.hpp"
#include "runtime/explain.hpp"

namespace cermet::cli {
namespace {

namespace fs = std::filesystem;

/// A declared input. Sizes that --dim does not give are 1.
OwnedTensor random_operand(const onnx::ValueInfo& input, const std::map<std::string, DimRange>& dims,
                           std::mt19937_64& random) {
  require(input.dtype.has_value() && input.dims.has_value(),
          "--input {}=random: expected a declared type and rank, found none", input.name);
  Shape shape;
  for (const onnx::DeclaredDim& d : *input.dims) {
    const auto range = dims.find(d.name);
    shape.push_back(d.value.value_or(range == dims.end() ? 1 : range->second.greatest));
  }
  return random_tensor(input.name, *input.dtype, shape, random);
}

}  // namespace

OnnxOptions with_model(OnnxOptions onnx, const ModelOptions& model) {
  onnx.model = model.model;
  onnx.device = model.engine.device;
  onnx.threads = model.engine.threads;
  onnx.mode = model.mode;
  onnx.super_kernel = model.engine.fusion.super_kernel;
  return onnx;
}

bool is_onnx(const std::string& model) { return fs::path(model).extension() == ".onnx" || onnx::is_plan(model); }

void declare_dims(Parser& parser, OnnxOptions& options) {
  parser.option("--dim <NAME=N>", options.dims,
                "a size that the file leaves open; NAME=1..8 compiles once for all of them");
}

void declare_onnx_options(Parser& parser, OnnxOptions& options) {
  parser.section("ONNX and graphs", onnx_input | graph_input);
  parser.option("--input <NAME=FILE.npy>", options.inputs,
                "an input, or a constant of a graph; NAME=random, or none, makes values up");
  declare_dims(parser, options);
  parser
      .option("--rounding <HOW>", options.rounding,
              "strict rounds every f16 and bf16 value where the file does; fast keeps them in float32 inside fused "
              "kernels, and allows rewrites that are equal "
              "only in exact arithmetic")
      .values({"strict", "fast"})
      .show_default();
}

Option declare_mode(Parser& parser, std::string& mode) {
  return parser.option("--mode <HOW>", mode, "how much is fused")
      .values({"none", "pattern", "published", "full"})
      .default_text("full");
}

void declare_super_kernel(Parser& parser, SuperKernelSelection& selection) {
  parser
      .option("--super-kernel <NODES>", selection.select,
              "nodes that become one launch: decode (all of a pass of few tokens), layer (those of each layer), "
              "NAME:PATTERN (those whose scope or result "
              "matches, * for any characters), or none, which drops the marks of a file")
      .advanced();
  std::string help = "options of --super-kernel, as key=value:key=value";
  const OptionTable& table = super_kernel_option_table();
  for (const OptionRow& row : table) {
    const OptionText about = text_of(row, table);
    help += fmt::format("; {} ({}, default {}): {}", row.name, about.values, about.fallback, row.help);
  }
  parser.option("--super-kernel-options <KEY=VALUE:..>", selection.options, help).advanced();
}

const SuperKernelSelection& checked(const SuperKernelSelection& selection) {
  check(selection);
  return selection;
}

OnnxModel::OnnxModel(const OnnxOptions& options, FusionOptions fusion) {
  onnx::ModelOptions made;
  if (!options.super_kernel.select.empty() || !options.super_kernel.options.empty())
    fusion.super_kernel = checked(options.super_kernel);
  fusion.rounding = options.rounding == "fast" ? Rounding::fast : Rounding::strict;
  if (!options.mode.empty()) fusion.mode = fusion_mode_named("--mode", options.mode);
  made.dims = dims_of(options.dims);
  made.most_parts = options.most_parts;
  if (onnx::is_plan(options.model)) {
    if (!options.dims.empty())
      fail(Status::invalid_argument, "--dim {}: expected none for a plan, whose sizes were given when it was compiled",
           options.dims.front());
    context_ = std::make_unique<Context>(ContextOptions{.device = options.device, .threads = options.threads});
    std::shared_ptr<const onnx::Plan> plan = onnx::read_plan(options.model, *context_);
    made.dims = plan->dims;
    if (options.mode.empty()) fusion.mode = plan->mode;
    compiled_ = std::make_unique<onnx::CompiledModel>(std::move(plan), *context_, std::move(fusion));
  } else {
    auto model = std::make_shared<const onnx::Model>(onnx::read_model(options.model));
    made.fusion = std::move(fusion);
    context_ = std::make_unique<Context>(ContextOptions{.device = options.device, .threads = options.threads});
    compiled_ = std::make_unique<onnx::CompiledModel>(std::move(model), *context_, made);
  }
  std::vector<std::string> names;
  for (const auto* inputs : {&compiled_->inputs(), &compiled_->defaults()})
    for (const onnx::ValueInfo& input : *inputs) names.push_back(input.name);
  std::map<std::string, std::string> given = inputs_of(options.inputs, names);
  std::mt19937_64 random(options.seed);
  for (const onnx::ValueInfo& input : compiled_->inputs()) {
    const auto found = given.find(input.name);
    const bool is_random = found == given.end() || found->second == "random";
    if (is_random) random_.push_back(input.name);
    operands_.push_back(is_random ? random_operand(input, made.dims, random) : read_npy(found->second, input.dtype));
    views_.push_back(operands_.back().view);
    given_.push_back({views_.back()});
    if (found != given.end()) given.erase(found);
  }
  for (const onnx::ValueInfo& input : compiled_->defaults()) {  // not given: what the file has
    const auto found = given.find(input.name);
    if (found == given.end()) {
      views_.emplace_back();
    } else {
      if (found->second == "random") random_.push_back(input.name);
      operands_.push_back(found->second == "random" ? random_operand(input, made.dims, random)
                                                    : read_npy(found->second, input.dtype));
      views_.push_back(operands_.back().view);
      given.erase(found);
    }
    given_.push_back({views_.back()});
  }
  if (!given.empty())
    fail(Status::invalid_argument, "--input {}: expected an input of the model ({}), found none of this name",
         given.begin()->first, fmt::join(names, ", "));
}

std::vector<StepInfo> steps_of_onnx(const onnx::CompiledModel& model) {
  std::vector<StepInfo> steps;
  for (const onnx::PartInfo& part : model.parts())
    if (part.session)
      steps.insert(steps.end(), part.session->executable().steps().begin(), part.session->executable().steps().end());
  return steps;
}

Json kernel_times_json(const std::vector<KernelUse>& uses) {
  Json list = Json::array();
  for (const KernelUse& use : uses)
    list.push_back({{"kernel", use.kernel},
                    {"op", use.op},
                    {"launches", use.launches},
                    {"seconds", use.runs > 0 ? Json(use.seconds / static_cast<double>(use.runs)) : Json()}});
  return list;
}

Json onnx_figures(OnnxModel& model) {
  double importing = 0, compiling = 0;
  for (const onnx::PartInfo& part : model.compiled().parts()) {
    importing += part.import_seconds;
    compiling += part.compile_seconds;
  }
  Json kernels = Json::array();
  for (const KernelUse& use : kernels_used(steps_of_onnx(model.compiled())))
    kernels.push_back({{"kernel", use.kernel}, {"op", use.op}, {"launches", use.launches}});
  Json ranges = Json::array();
  for (const SymbolRanges& part : model.compiled().compiled_ranges()) {
    std::string text;
    for (const SymbolRange& r : part)
      text += fmt::format("{}{}={}..{}", text.empty() ? "" : " ", r.symbol.name(), r.range.least, r.range.greatest);
    ranges.push_back(text);
  }
  Json json{{"device", model.context().description()},
            {"parts", model.compiled().parts().size()},
            {"symbolic", model.compiled().is_symbolic()},
            {"why_not_symbolic", model.compiled().why_not_symbolic()},
            {"compiled_ranges", ranges},
            {"import_seconds", importing},
            {"compile_seconds", compiling},
            {"compiled_programs", model.context().target() ? jit::DiskCache::process().missed() : 0},
            {"weight_bytes", model.compiled().weight_bytes()},
            {"arena_bytes", model.compiled().arena_bytes()},
            {"peak_memory_bytes", peak_memory_bytes()}};
  json["kernels"] = kernels;
  return json;
}

void OnnxModel::place_operands() {
  Stream* const stream = context_->stream();
  if (!stream || !placed_.empty()) return;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const TensorView& view = views_[i];
    if (!view.present) {
      placed_.emplace_back();
      continue;
    }
    const std::int64_t bytes = dense_bytes(view.dtype, view.shape);
    const DeviceBuffer& memory = placed_.emplace_back(context_->device().allocate(std::max<std::int64_t>(bytes, 1)));
    stream->upload(memory.data(), view.data, bytes);
    given_[i] = {{memory.data(), view.dtype, view.shape}, true};
  }
  stream->synchronize();
}

void run_onnx(const OnnxOptions& options, Console& console) {
  check_result_place(options.output);
  OnnxModel model(options);
  const std::vector<std::string> names = model.compiled().output_names();
  const std::vector<fs::path> files = result_files(options.output, names);
  const auto start = std::chrono::steady_clock::now();
  model.run();
  const std::optional<std::string> missing = model.compiled().missing_elements();
  Json results = Json::array();
  Table table;
  if (missing)
    log().warn(
        "{}: elements of '{}' say what follows, and device {} computes none: only what comes before was compiled",
        options.model, *missing, options.device);
  for (std::size_t i = 0; i < names.size() && !missing; ++i) {
    const TensorView view = model.compiled().host_output(i);
    if (!files.empty()) write_npy(files[i], view);
    Json result{{"name", names[i]}, {"type", view.type().to_string()}};
    if (!files.empty()) result["file"] = files[i].string();
    results.push_back(std::move(result));
    table.row({names[i], view.type().to_string(), files.empty() ? first_elements(view) : files[i].string()});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json json = onnx_figures(model);
  json["model"] = options.model;
  json["run_seconds"] = seconds;
  json["outputs"] = results;
  json["random_inputs"] = model.random_inputs();
  if (console.json()) console.write_json(json);
  else console.write(random_inputs_text(model.random_inputs(), options.seed) + table.to_string());
  console.flush();
}

void compile_onnx(const OnnxOptions& options, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  Context context(ContextOptions{.device = options.device, .threads = options.threads});
  onnx::write_plan(std::make_shared<const onnx::Model>(onnx::read_model(options.model)), dims_of(options.dims), context,
                   options.output, options.mode.empty() ? FusionMode::full : fusion_mode_named("--mode", options.mode));
  std::int64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(options.output, error), end; !error && at != end; at.increment(error))
    if (std::error_code none; at->is_regular_file(none)) bytes += static_cast<std::int64_t>(at->file_size(none));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (console.json())
    console.write_json({{"model", options.model}, {"plan", options.output}, {"bytes", bytes}, {"seconds", seconds}});
  else console.print("{}: {}\n", options.output, bytes_text(static_cast<double>(bytes)));
  console.flush();
}

}  // namespace cermet::cli
