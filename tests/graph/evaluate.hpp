// What a graph computes by its operators' references, on values that depend on names alone.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "graph/graph.hpp"
#include "graph/memory.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

class Evaluation {
 public:
  /// `given`: elements of inputs and constants by name, others depend on their names.
  Evaluation(const Graph& graph, const SymbolValues& symbols,
             const std::map<std::string, std::vector<double>>& given = {})
      : graph_(graph), values_(graph.values().size()) {
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const Value& value = graph.values()[v];
      values_[v] = OwnedTensor(value.type.dtype, cermet::bind(value.type.dims, symbols));
      if (value.expression()) evaluate(*value.expression(), values_[v].view);
      else if (value.data())
        std::copy(value.data()->bytes().begin(), value.data()->bytes().end(), values_[v].view.as<std::byte>());
      else if (const auto found = given.find(value.name); found != given.end()) set(found->second, values_[v].view);
      else if (value.kind != ValueKind::intermediate) fill(value.name, values_[v].view);
    }
    for (const Node& node : graph.nodes()) run(node, symbols);
  }

  /// Elements of each output of the graph, by its name.
  std::map<std::string, std::vector<double>> outputs() const {
    std::map<std::string, std::vector<double>> results;
    for (const GraphOutput& output : graph_.outputs()) results[output.name] = elements(output.value);
    return results;
  }
  std::vector<double> elements(ValueId id) const {
    const TensorView& view = values_[id.at()].view;
    std::vector<double> list;
    for (std::int64_t i = 0; i < view.elements(); ++i) list.push_back(load(view, i));
    return list;
  }

 private:
  static void set(const std::vector<double>& elements, const TensorView& view) {
    for (std::int64_t i = 0; i < view.elements(); ++i) store(view, i, elements[static_cast<std::size_t>(i)]);
  }

  /// Indices count up, scales are small and positive, everything else is between -1 and 1.
  static void fill(const std::string& name, const TensorView& view) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(std::hash<std::string>()(name)));
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      const double number = static_cast<double>(random() % 2001) / 1000 - 1;
      const bool is_index = view.dtype == DType::i32, is_scale = name.find("scale") != std::string::npos;
      store(view, i, is_index ? static_cast<double>(i) : is_scale ? 0.02 + number / 100 : number);
    }
  }

  void evaluate(const ConstantExpression& expression, const TensorView& view) {
    std::vector<std::optional<TensorType>> types;
    std::vector<TensorView> inputs;
    for (const ValueId id : expression.inputs) {
      types.push_back(id ? std::optional(graph_.type(id)) : std::nullopt);
      inputs.push_back(id ? values_[id.at()].view : TensorView());
    }
    const Problem problem = make_problem(definition(expression.op), std::move(types), expression.attributes);
    std::vector<OwnedTensor> memory(problem.outputs.size());
    std::vector<TensorView> outputs;
    for (std::size_t o = 0; o < memory.size(); ++o) {
      memory[o] = OwnedTensor(problem.outputs[o].dtype, cermet::bind(problem.outputs[o].dims, {}));
      outputs.push_back(static_cast<std::int32_t>(o) == expression.output ? view : memory[o].view);
    }
    definition(problem).reference({inputs, outputs, problem.attributes});
  }

  void run(const Node& node, const SymbolValues& symbols) {
    const Problem problem = graph_.problem_of(node, symbols);
    std::vector<TensorView> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(id ? values_[id.at()].view : TensorView());
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      outputs.push_back(values_[node.outputs[o].at()].view);
      const ValueId shared = overwritten_by(node, o);
      if (shared)
        std::memcpy(outputs.back().data, values_[shared.at()].view.data,
                    static_cast<std::size_t>(values_[shared.at()].memory.size()));
    }
    definition(problem).reference({inputs, outputs, problem.attributes});
  }

  const Graph& graph_;
  std::vector<OwnedTensor> values_;
};

}  // namespace cermet
