// Graphs in tests/runtime/graphs, run by kernels and by references on the same data.
#pragma once

#include <map>
#include <random>
#include <string>

#include "graph/text.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "runtime/compile.hpp"
#include "runtime/context.hpp"
#include "tests/support/golden.hpp"

namespace cermet {

inline Graph test_graph(const std::string& name) {
  return parse_graph(read_text(CERMET_SOURCE_DIR "/tests/runtime/graphs/" + name + ".graph"));
}

/// Values of a tensor from its name alone: the same weights for kernels and references.
inline void fill_by_name(const std::string& name, const TensorView& tensor) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(std::hash<std::string>()(name)));
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    store(tensor, i, static_cast<double>(random() % 2001) / 1000 - 1);
}

inline void load_by_name(const std::string& name, std::int64_t slice, const TensorView& destination) {
  if (slice < 0) return fill_by_name(name, destination);
  OwnedTensor stack(destination.dtype, {slice + 1, destination.shape[0],
                                        destination.shape[1]});  // matrix e does not depend on those after it
  fill_by_name(name, stack.view);
  for (std::int64_t i = 0; i < destination.elements(); ++i)
    store(destination, i, load(stack.view, slice * destination.elements() + i));
}

/// A batch over the paged cache of dense.graph: sequence b has context[b] tokens, of which the last fresh[b] are new.
/// Pages are assigned backwards.
struct Batch {
  std::vector<std::int64_t> context, fresh;
  SymbolValues symbols;
  std::map<std::string, OwnedTensor> inputs;

  Batch(std::vector<std::int64_t> context_lens, std::vector<std::int64_t> new_tokens)
      : context(std::move(context_lens)), fresh(std::move(new_tokens)) {
    const auto sequences = static_cast<std::int64_t>(context.size());
    std::vector<double> ids, positions, slots, tables, starts{0}, rows;
    for (std::int64_t b = 0; b < sequences; ++b) {
      const auto index = static_cast<std::size_t>(b);
      for (std::int64_t page = 0; page < 4; ++page) tables.push_back(static_cast<double>(11 - b * 4 - page));
      for (std::int64_t p = context[index] - fresh[index]; p < context[index]; ++p) {
        ids.push_back(static_cast<double>((p * 7 + b * 13) % 50));
        positions.push_back(static_cast<double>(p));
        slots.push_back(static_cast<double>((11 - b * 4 - p / 8) * 8 + p % 8));
      }
      starts.push_back(static_cast<double>(ids.size()));
      if (fresh[index] > 0) rows.push_back(static_cast<double>(ids.size()) - 1);
    }
    symbols.set(Symbol("T"), static_cast<std::int64_t>(ids.size()));
    symbols.set(Symbol("B"), sequences);
    symbols.set(Symbol("R"), static_cast<std::int64_t>(rows.size()));
    add("ids", ids, {});
    add("positions", positions, {});
    add("slots", slots, {});
    add("block_tables", tables, {4});
    add("context_lens", {context.begin(), context.end()}, {});
    add("query_starts", starts, {});
    add("rows", rows, {});
    for (const std::string cache : {"k_cache", "v_cache"}) {
      inputs[cache] = OwnedTensor(DType::f32, {12, 2, 8, 8});
      fill_by_name(cache, inputs[cache].view);
    }
  }
  void add(const std::string& name, const std::vector<double>& values, const std::vector<std::int64_t>& trailing) {
    Shape shape{static_cast<std::int64_t>(values.size())};
    for (const std::int64_t d : trailing) {
      shape[0] /= d;
      shape.push_back(d);
    }
    inputs[name] = OwnedTensor(DType::i32, shape);
    for (std::size_t i = 0; i < values.size(); ++i) store(inputs[name].view, static_cast<std::int64_t>(i), values[i]);
  }
};

/// What the references of a graph's operators compute, node by node; the batch's state is not changed.
class ReferenceRun {
 public:
  ReferenceRun(const Graph& graph, const Batch& batch) : graph_(graph), values_(graph.values().size()) {
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const Value& value = graph.values()[v];
      values_[v] = OwnedTensor(value.type.dtype, bind(value.type.dims, batch.symbols));
      if (value.kind == ValueKind::constant) fill_by_name(value.name, values_[v].view);
      if (value.kind == ValueKind::input) copy(batch.inputs.at(value.name).view, values_[v].view);
    }
    for (const Node& node : graph.nodes()) run(node, batch.symbols);
  }
  const TensorView& output(const std::string& name) const {
    for (const GraphOutput& output : graph_.outputs())
      if (output.name == name) return view(output.value);
    fail(Status::invalid_argument, "output '{}': expected an output, found none", name);
  }

 private:
  static void copy(const TensorView& from, const TensorView& to) {
    for (std::int64_t i = 0; i < to.elements(); ++i) store(to, i, load(from, i));
  }
  const TensorView& view(ValueId id) const { return values_[static_cast<std::size_t>(id.index)].view; }
  void run(const Node& node, const SymbolValues& symbols) {
    const Problem problem = graph_.problem_of(node, symbols);
    std::vector<TensorView> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(id ? view(id) : TensorView());
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      outputs.push_back(view(node.outputs[o]));
      const std::vector<int>& aliases = definition(problem).aliases;
      if (o < aliases.size() && aliases[o] >= 0) copy(inputs.at(static_cast<std::size_t>(aliases[o])), outputs.back());
    }
    definition(problem).reference({inputs, outputs, problem.attributes});
  }

  const Graph& graph_;
  std::vector<OwnedTensor> values_;
};

/// A compiled graph of tests/runtime/graphs with memory for its inputs.
struct GraphRunner {
  static constexpr std::int64_t max_tokens = 24, max_sequences = 3;
  Graph graph;
  Context context;
  WeightStore weights;
  std::vector<CompileStep> report;
  Executable executable;

  explicit GraphRunner(const std::string& name, CompileOptions options = {}, const std::string& device_name = "cpu",
                       int threads = 2)
      : graph(test_graph(name)),
        context({device_name, threads}),
        weights(load_by_name, context.pool(), context.queue()),
        executable(compile(graph, context.device(), weights, context.pool(), with_maximum(options, context.queue()),
                           &report)) {}
  static CompileOptions with_maximum(CompileOptions options, const DeviceQueue& queue = {}) {
    options.queue = queue;
    options.maximum.set(Symbol("T"), max_tokens);
    options.maximum.set(Symbol("B"), max_sequences);
    options.maximum.set(Symbol("R"), max_sequences);
    return options;
  }
  void bind(const Batch& batch) {
    for (const Value& value : graph.values())
      if (value.kind == ValueKind::input) executable.bind(value.name, batch.inputs.at(value.name).view);
  }
  void run(const Batch& batch) {
    bind(batch);
    executable.run(batch.symbols);
  }
};

inline std::vector<Batch> batches() {
  std::vector<Batch> list;
  list.emplace_back(std::vector<std::int64_t>{1}, std::vector<std::int64_t>{1});
  list.emplace_back(std::vector<std::int64_t>{24}, std::vector<std::int64_t>{24});
  list.emplace_back(std::vector<std::int64_t>{30, 9, 17}, std::vector<std::int64_t>{1, 9, 3});
  list.emplace_back(std::vector<std::int64_t>{31, 10, 18}, std::vector<std::int64_t>{1, 1, 1});
  list.emplace_back(std::vector<std::int64_t>{5, 0}, std::vector<std::int64_t>{0, 0});
  return list;
}

}  // namespace cermet
