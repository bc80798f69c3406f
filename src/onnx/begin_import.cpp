// Where an import begins, and what it would not get through.
#include <map>

#include "onnx/compiled_model.hpp"

namespace cermet::onnx {
namespace {

using Counts = std::map<std::string, std::int64_t>;

void count_missing(const Model& model, const std::vector<Node>& nodes,
                   const std::map<std::string, std::int64_t>& opsets, Counts& counts) {
  for (const Node& node : nodes) {
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<const GraphDef>>(&attribute))
        count_missing(model, (*graph)->nodes, opsets, counts);
    const bool control = node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
    if (control || model.function(node)) continue;
    const auto opset = opsets.find(node.domain);
    const std::int64_t version = opset == opsets.end() ? 0 : opset->second;
    if (!find_row(node.op, node.domain, version))
      ++counts[fmt::format("{}{}{} of opset {}", node.domain, node.domain.empty() ? "" : ".", node.op, version)];
  }
}

}  // namespace

ImportState begin_import(const Model& model, const std::vector<TensorType>& inputs,
                         const std::vector<std::string>& overridden) {
  ImportState state;
  Frame frame{.nodes = &model.graph->nodes, .opsets = &model.opsets, .names = {}, .sees_outer = false, .results = {}};
  const auto add = [&](const std::string& name, Slot slot) {
    frame.names[name] = {static_cast<std::int32_t>(state.slots.size())};
    state.slots.push_back(std::move(slot));
  };
  std::map<std::string, const Tensor*> given;
  for (const Tensor& tensor : model.graph->initializers) given[tensor.name()] = &tensor;
  std::size_t next = 0;
  for (const ValueInfo& input : model.graph->inputs)
    if (!given.contains(input.name))
      add(input.name, {.name = input.name, .type = inputs.at(next++), .data = {}, .symbolic = {}});
  for (const std::string& name : overridden) {
    add(name, {.name = name, .type = inputs.at(next++), .data = {}, .symbolic = {}});
    given.erase(name);
  }
  for (const auto& [name, tensor] : given) {
    Slot slot{.name = name, .type = tensor->type(), .data = {}, .symbolic = {}, .tensor = tensor};
    slot.bits = tensor->bits();
    add(name, std::move(slot));
  }
  for (const ValueInfo& output : model.graph->outputs) frame.results.push_back(output.name);
  state.frames.push_back(std::move(frame));
  return state;
}

std::vector<std::string> unsupported_parts(const Model& model) {
  Counts counts;
  count_missing(model, model.graph->nodes, model.opsets, counts);
  for (const FunctionDef& function : model.functions) count_missing(model, function.nodes, function.opsets, counts);
  std::vector<std::string> lines;
  for (const auto& [what, count] : counts) lines.push_back(fmt::format("{} x {}", count, what));
  return lines;
}

}  // namespace cermet::onnx
