#include "cli/graph_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "cli/bench/result_files.hpp"
#include "cli/model_files.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"
#include "graph/text.hpp"
#include "io/npy.hpp"
#include "runtime/explain.hpp"
#include "runtime/plan_text.hpp"

namespace cermet::cli {
namespace {

bool is_loaded(const Value& value) {
  return value.kind == ValueKind::constant && std::holds_alternative<std::monostate>(value.source);
}

std::string operand_names(const Graph& graph) {
  std::string names;
  for (const Value& value : graph.values())
    if (value.kind == ValueKind::input || is_loaded(value)) names += (names.empty() ? "" : ", ") + value.name;
  return names;
}

}  // namespace

bool is_graph(const std::string& model) { return std::filesystem::path(model).extension() == ".graph"; }

GraphFile::GraphFile(const OnnxOptions& options, FusionOptions fusion)
    : context_({options.device, options.threads}), random_(options.seed) {
  Graph graph = parse_graph(read_text_file(options.model));
  fusion.rounding = options.rounding == "fast" ? Rounding::fast : Rounding::strict;
  if (!options.mode.empty()) fusion.mode = fusion_mode_named("--mode", options.mode);
  if (!options.super_kernel.select.empty() || !options.super_kernel.options.empty())
    fusion.super_kernel = checked(options.super_kernel);
  std::vector<std::string> names;
  for (const Value& value : graph.values()) names.push_back(value.name);
  for (const auto& [name, file] : inputs_of(options.inputs, names)) {
    const ValueId id = graph.find(name);
    if (!id || (graph.value(id).kind != ValueKind::input && !is_loaded(graph.value(id))))
      fail(Status::invalid_argument,
           "--input {}: expected an input or a constant of the graph ({}), found none of this name", name,
           operand_names(graph));
    if (file != "random") operands_[name] = read_npy(file, graph.type(id).dtype);
  }
  take_sizes(graph, dims_of(options.dims));
  for (const Value& value : graph.values())
    if ((value.kind == ValueKind::input || is_loaded(value)) && !operands_.contains(value.name)) {
      operands_[value.name] = made_up(value);
      made_up_.push_back(value.name);
    }
  for (const GraphOutput& output : graph.outputs()) outputs_.push_back(output.name);
  const auto load = [this](const std::string& name, std::int64_t slice, const TensorView& destination) {
    const TensorView& from = operands_.at(name).view;
    require(slice >= 0 || from.shape == destination.shape, "--input {}: expected dimensions {}, found {}", name,
            destination.shape.to_string(), from.shape.to_string());
    const std::int64_t bytes = dense_bytes(destination.dtype, destination.shape);
    if (bytes > 0)
      std::memcpy(destination.data, from.as<std::byte>() + std::max<std::int64_t>(slice, 0) * bytes,
                  static_cast<std::size_t>(bytes));
  };
  SessionOptions session;
  session.maximum = maximum_;
  session.fusion = std::move(fusion);
  session_ = std::make_unique<Session>(graph, context_, load, session);
  for (const Value& value : graph.values()) {
    if (value.kind != ValueKind::input) continue;
    TensorView view = operands_.at(value.name).view;
    if (Stream* const stream = context_.stream()) {
      const std::int64_t bytes = dense_bytes(view.dtype, view.shape);
      placed_.push_back(context_.device().allocate(std::max<std::int64_t>(bytes, 1)));
      stream->upload(placed_.back().data(), view.data, bytes);
      view.data = placed_.back().data();
    }
    session_->bind(value.name, view);
  }
  if (context_.stream()) context_.stream()->synchronize();
}

/// Sizes of the run, and the largest of each.
void GraphFile::take_sizes(const Graph& graph, const std::map<std::string, DimRange>& dims) {
  const std::vector<Symbol> symbols = symbols_of(graph);
  for (const auto& [name, range] : dims)
    require(std::ranges::find(symbols, name, &Symbol::name) != symbols.end(),
            "--dim {}: expected a size that a value of the graph has, found none of this name", name);
  for (const Symbol& symbol : symbols) {
    const auto given = dims.find(symbol.name());
    const DimRange range = range_of(graph.ranges(), symbol);
    std::int64_t size = range.greatest == DimRange{}.greatest ? 1 : range.greatest, most = size;
    if (given != dims.end()) size = most = given->second.greatest;
    for (const Value& value : graph.values()) {
      const auto operand = operands_.find(value.name);
      if (value.kind != ValueKind::input || operand == operands_.end() ||
          operand->second.view.shape.rank() != value.type.rank())
        continue;
      for (int axis = 0; axis < value.type.rank(); ++axis)
        if (value.type.dims[static_cast<std::size_t>(axis)].is(symbol)) size = operand->second.view.shape[axis];
    }
    sizes_.set(symbol, size);
    maximum_.set(symbol, std::max(size, most));
  }
}

OwnedTensor GraphFile::made_up(const Value& value) {
  const Shape shape = cermet::bind(value.type.dims, sizes_);
  return context_.computes() ? random_tensor(value.name, value.type.dtype, shape, random_)
                             : OwnedTensor(value.type.dtype, shape);
}

void run_graph(const OnnxOptions& options, Console& console) {
  check_result_place(options.output);
  GraphFile file(options);
  const std::vector<std::filesystem::path> files = result_files(options.output, file.outputs());
  file.session().run();
  Json results = Json::array();
  Table table;
  for (std::size_t i = 0; i < file.outputs().size(); ++i) {
    const std::string& name = file.outputs()[i];
    const TensorView view = file.session().host_output(name);
    if (!files.empty()) write_npy(files[i], view);
    Json result{{"name", name}, {"type", view.type().to_string()}};
    if (!files.empty()) result["file"] = files[i].string();
    results.push_back(std::move(result));
    table.row({name, view.type().to_string(), files.empty() ? first_elements(view) : files[i].string()});
  }
  if (!console.json()) return console.write(random_inputs_text(file.random_inputs(), options.seed) + table.to_string());
  Json kernels = Json::array();
  for (const KernelUse& use : kernels_used(file.session().executable().steps()))
    kernels.push_back({{"kernel", use.kernel}, {"op", use.op}, {"launches", use.launches}});
  Json json{{"graph", options.model}, {"device", file.context().description()}};
  json["outputs"] = results;
  json["random_inputs"] = file.random_inputs();
  json["kernels"] = kernels;
  json["arena_bytes"] = file.session().executable().arena_bytes();
  json["weight_bytes"] = file.session().weights().bytes();
  console.write_json(json);
}

void bench_graph(const OnnxOptions& options, const OnnxBench& bench, Console& console) {
  GraphFile file(options);
  Executable& executable = file.session().executable();
  const auto wait = [&] {
    if (file.context().stream()) file.context().stream()->synchronize();
  };
  for (int warm = 0; warm < 3; ++warm) file.session().run();
  wait();
  std::vector<double> seconds;
  for (int r = 0; r < bench.repeat; ++r) {
    stop_if_interrupted();
    const auto start = std::chrono::steady_clock::now();
    file.session().run();
    wait();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  if (bench.steps) {
    executable.set_timing(true);
    for (int r = 0; r < bench.repeat; ++r) file.session().run();
  }
  const double median = seconds[seconds.size() / 2];
  if (console.json()) {
    Json json{{"graph", options.model},
              {"device", file.context().description()},
              {"launches", executable.steps().size()},
              {"seconds", median},
              {"least_seconds", seconds.front()}};
    if (bench.steps) json["step_kernels"] = kernel_times_json(kernels_used(executable.steps()));
    return console.write_json(json);
  }
  console.print("{} on {}: {} launches, median {}, least {} of {} runs\n", options.model, file.context().description(),
                executable.steps().size(), seconds_text(median), seconds_text(seconds.front()), seconds.size());
  if (bench.steps) console.write(explain(executable.steps()));
  if (bench.plan) {
    const std::vector<PlannedLaunch> launches = planned_launches(executable, file.context().limits());
    console.write(plan_table(launches, executable.steps()));
  }
}

}  // namespace cermet::cli
