#include "fuse/split_gates.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "graph/editor.hpp"
#include "op/operands.hpp"

namespace cermet {
namespace {

constexpr std::size_t smooth = op::silu_and_mul_quant::smooth, scale = op::silu_and_mul_quant::scale;

Attributes activation_of(const Node& node) {
  Attributes attributes = known_attributes(node.attributes, OpKind::silu_and_mul);
  attributes.set("out_dtype", std::string("f32"));
  return attributes;
}

/// The quantization alone and the product that reads it, for scaled_mm; nothing where something else reads it, too.
std::optional<Region> quantization_before_product(const Graph& graph, const Node& gate, const SymbolValues& maximum,
                                                  const Target* target) {
  constexpr std::size_t row = 0, row_scale = 2;
  const std::span<const Use> uses = graph.uses(gate.outputs[0]);
  if (uses.size() != 1 || gate.outputs.size() != 2) return std::nullopt;
  const Node& product = graph.nodes()[static_cast<std::size_t>(uses[0].node)];
  if (product.op != OpKind::scaled_mm || uses[0].operand != static_cast<std::int32_t>(row) ||
      product.inputs.size() <= row_scale || product.inputs[row_scale] != gate.outputs[1] ||
      graph.uses(gate.outputs[1]).size() != 1)
    return std::nullopt;
  Region region;
  TensorType gated = graph.value(gate.outputs[0]).type;
  gated.dtype = DType::f32;
  region.nodes.push_back({problem_of(OpKind::dynamic_quant, std::array{gated},
                                     known_attributes(gate.attributes, OpKind::dynamic_quant), maximum, target),
                          {}});
  region.nodes[0].inputs.resize(region.nodes[0].problem.inputs.size());
  region.nodes[0].inputs[0] = RegionInput::outside(0);
  region.operands.push_back({0, 0});
  region.nodes.push_back({problem_of(graph, product, maximum, target), {}});
  for (std::size_t i = 0; i < region.nodes[1].problem.inputs.size(); ++i) {
    RegionInput from;
    if (i == row || i == row_scale) from = RegionInput::inside(0, i == row ? 0 : 1, Rounding::strict);
    else if (region.nodes[1].problem.has(i)) {
      from = RegionInput::outside(region.operands.size());
      region.operands.push_back({1, static_cast<std::int32_t>(i)});
    }
    region.nodes[1].inputs.push_back(from);
  }
  region.anchor = 1;
  region.results = {{1, 0}};
  return region;
}

/// Whether a kernel takes the product before a gate with the activation alone; and, unless rows are experts', another
/// one the quantization with the product after it: two kernels for a row that is gated and quantized by one are none
/// the better.
bool is_taken(const Graph& graph, const Node& gate, const SymbolValues& maximum, const Target* target,
              FunctionRef<bool(const Region& region)> takes) {
  const ValueId x = gate.inputs[0];
  const std::int32_t producer = graph.value(x).producer;
  if (producer < 0 || graph.uses(x).size() != 1 || graph.value(x).type.dtype != DType::f32) return false;
  const Node& product = graph.nodes()[static_cast<std::size_t>(producer)];
  if (product.super_kernel != gate.super_kernel) return false;
  if (product.op != OpKind::grouped_linear && product.op != OpKind::scaled_mm) return false;
  if (is_output(graph, x) || std::ranges::any_of(gate.outputs, [&](ValueId id) { return is_output(graph, id); }))
    return false;
  if (product.op == OpKind::scaled_mm) {
    if (gate.inputs.size() > smooth && gate.inputs[smooth]) return false;
    const auto behind = quantization_before_product(graph, gate, maximum, target);
    if (!behind || !takes(*behind)) return false;
  }
  Region region(problem_of(graph, product, maximum, target));
  region.nodes.push_back(
      {problem_of(OpKind::silu_and_mul, std::array{graph.value(x).type}, activation_of(gate), maximum, target),
       {RegionInput::inside(0, 0, Rounding::strict)}});
  region.results = {{1, 0}};
  return takes(region);
}

}  // namespace

SplitNodes split_gates(const Graph& graph, const SymbolValues& maximum, const Target* target,
                       FunctionRef<bool(const Region& region)> takes) {
  GraphEditor editor(graph);
  std::size_t count = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != OpKind::silu_and_mul_quant || (node.inputs.size() > scale && node.inputs[scale])) continue;
    if (!is_taken(graph, node, maximum, target, takes)) continue;
    const auto place = static_cast<NodeId>(n);
    const std::vector<ValueId> y =
        editor.insert_before(place, OpKind::silu_and_mul, {node.inputs[0]}, activation_of(node), node.scope);
    std::vector<ValueId> rows = y;
    if (node.inputs.size() > smooth) rows.push_back(node.inputs[smooth]);
    const std::vector<ValueId> quantized = editor.insert_before(
        place, OpKind::dynamic_quant, rows, known_attributes(node.attributes, OpKind::dynamic_quant), node.scope);
    std::vector<std::pair<ValueId, ValueId>> results;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) results.emplace_back(node.outputs[i], quantized[i]);
    editor.replace(std::span(&place, 1), results);
    ++count;
  }
  return {count == 0 ? graph : editor.finish(), count};
}

}  // namespace cermet
