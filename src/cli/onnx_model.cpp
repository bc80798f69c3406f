#include "cli/onnx_model.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <random>

#include "cli/interrupt.hpp"
#include "cli/model_files.hpp"
#include "cli/model_options.hpp"
#include "cli/process.hpp"
#include "graph/super_kernel_options.hpp"
#include "io/npy.hpp"
#include "jit/cache.hpp"
#include "onnx/plan.hpp"
#include "runtime/explain.hpp"

namespace cermet::cli {
namespace {

namespace fs = std::filesystem;

/// A declared input. Sizes that --dim does not give are 1.
OwnedTensor random_operand(const onnx::ValueInfo& input, const std::map<std::string, DimRange>& dims, std::mt19937_64& random) {
  require(input.dtype.has_value() && input.dims.has_value(), "--input {}=random: expected a declared type and rank, found none", input.name);
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
  onnx.device = model.device;
  onnx.threads = model.threads;
  onnx.mode = model.mode;
  onnx.super_kernel = model.super_kernel;
  return onnx;
}

bool is_onnx(const std::string& model) { return fs::path(model).extension() == ".onnx" || onnx::is_plan(model); }

void declare_onnx_options(Parser& parser, OnnxOptions& options) {
  parser.option("--input", options.inputs,
                "of an ONNX model or a graph: NAME=FILE.npy, or NAME=random; inputs that are not given are random, as constants of a graph");
  parser.option("--dim", options.dims, "of an ONNX model or a graph: a size that the file leaves open, NAME=4, or NAME=1..8 to compile once for all of them");
  parser.option("--rounding", options.rounding,
                "of an ONNX model or a graph: strict rounds every f16 and bf16 value as the file has it; fast keeps those in float32 that fused kernels pass "
                "on without storing "
                "them, and takes rewrite rules that are equal in exact arithmetic alone, in float32 models, too");
}

void declare_mode(Parser& parser, std::string& mode) {
  parser.option("--mode", mode, "how much is fused: none, pattern, published or full, which is the default; docs/guide/fusion.md");
}

void declare_super_kernel(Parser& parser, SuperKernelSelection& selection) {
  parser.option(
      "--super-kernel", selection.select,
      "nodes that become one launch: decode (all of a pass of few tokens; of an ONNX file all), layer (those of each layer), NAME:PATTERN (those whose "
      "scope or result fits, * for any characters), or none, which takes away the marks of a file; docs/guide/super-kernels.md");
  std::string help = "of what --super-kernel selects, as key=value:key=value";
  for (const SuperKernelOptionInfo& info : super_kernel_options()) help += fmt::format("; {}={} ({}): {}", info.key, info.values, info.standard, info.summary);
  parser.option("--super-kernel-options", selection.options, help);
}

const SuperKernelSelection& checked(const SuperKernelSelection& selection) {
  check(selection);
  return selection;
}

OnnxModel::OnnxModel(const OnnxOptions& options, FusionOptions fusion) {
  onnx::ModelOptions made;
  if (!options.super_kernel.select.empty() || !options.super_kernel.options.empty()) fusion.super_kernel = checked(options.super_kernel);
  require(options.rounding == "strict" || options.rounding == "fast", "--rounding: expected strict or fast, found '{}'", options.rounding);
  fusion.rounding = options.rounding == "fast" ? Rounding::fast : Rounding::strict;
  if (!options.mode.empty()) fusion.mode = fusion_mode_named("--mode", options.mode);
  made.dims = dims_of(options.dims);
  if (onnx::is_plan(options.model)) {
    if (!options.dims.empty())
      fail(Status::invalid_argument, "--dim {}: expected none for a plan, whose sizes were given when it was compiled", options.dims.front());
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
  std::map<std::string, std::string> given = inputs_of(options.inputs);
  std::mt19937_64 random(options.seed);
  for (const onnx::ValueInfo& input : compiled_->inputs()) {
    const auto found = given.find(input.name);
    const bool is_random = found == given.end() || found->second == "random";
    operands_.push_back(is_random ? random_operand(input, made.dims, random) : read_npy(found->second, input.dtype));
    views_.push_back(operands_.back().view);
    given_.push_back({views_.back()});
    if (found != given.end()) given.erase(found);
  }
  if (!given.empty()) {
    std::string names;
    for (const onnx::ValueInfo& input : compiled_->inputs()) names += (names.empty() ? "" : ", ") + input.name;
    fail(Status::invalid_argument, "--input {}: expected an input of the model ({}), found none of this name", given.begin()->first, names);
  }
}

std::vector<StepInfo> steps_of_onnx(const onnx::CompiledModel& model) {
  std::vector<StepInfo> steps;
  for (const onnx::PartInfo& part : model.parts())
    if (part.session) steps.insert(steps.end(), part.session->executable().steps().begin(), part.session->executable().steps().end());
  return steps;
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
    for (const SymbolRange& r : part) text += fmt::format("{}{}={}..{}", text.empty() ? "" : " ", r.symbol.name(), r.range.least, r.range.greatest);
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
    const std::int64_t bytes = dense_bytes(view.dtype, view.shape);
    const DeviceBuffer& memory = placed_.emplace_back(context_->device().allocate(std::max<std::int64_t>(bytes, 1)));
    stream->upload(memory.data(), view.data, bytes);
    given_[i] = {{memory.data(), view.dtype, view.shape}, true};
  }
  stream->synchronize();
}

void run_onnx(const OnnxOptions& options, Console& console) {
  if (!options.output.empty()) fs::create_directories(options.output);
  OnnxModel model(options);
  const auto start = std::chrono::steady_clock::now();
  model.run();
  const std::vector<std::string> names = model.compiled().output_names();
  Json results = Json::array();
  Table table;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorView view = model.compiled().host_output(i);
    if (!options.output.empty()) write_npy(file_of(options.output, names[i]), view);
    results.push_back({{"name", names[i]}, {"type", view.type().to_string()}});
    table.row({names[i], view.type().to_string()});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json json = onnx_figures(model);
  json["model"] = options.model;
  json["run_seconds"] = seconds;
  json["outputs"] = results;
  if (console.json()) console.write_json(json);
  else console.write(table.to_string());
  console.flush();
}

void compile_onnx(const OnnxOptions& options, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  Context context(ContextOptions{.device = options.device, .threads = options.threads});
  onnx::write_plan(std::make_shared<const onnx::Model>(onnx::read_model(options.model)), dims_of(options.dims), context, options.output,
                   options.mode.empty() ? FusionMode::full : fusion_mode_named("--mode", options.mode));
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(options.output))
    if (entry.is_regular_file()) bytes += static_cast<std::int64_t>(entry.file_size());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (console.json()) console.write_json({{"model", options.model}, {"plan", options.output}, {"bytes", bytes}, {"seconds", seconds}});
  else console.print("{}: {}\n", options.output, bytes_text(static_cast<double>(bytes)));
  console.flush();
}

}  // namespace cermet::cli
