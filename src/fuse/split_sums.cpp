#include "fuse/split_sums.hpp"

#include <algorithm>
#include <array>

#include "graph/editor.hpp"
#include "op/operands.hpp"
#include "op/products.hpp"

namespace cermet {
namespace {

using enum op::add_rms_norm::Operand;
constexpr std::size_t y = 0, sum = 1;  // its results

/// Rows up to which it was no slower on an H200 (bench/results/h200/compare/few-sequences.txt): of products of 16-bit
/// weights, and of others.
constexpr std::int64_t most_rows = 32, most_quantized_rows = 1;

/// Whether a kernel takes the product that gives operand `i` of a sum together with the sum.
bool is_taken(const Graph& graph, const Node& norm, std::size_t i, const SymbolValues& maximum, const Target* target,
              FunctionRef<bool(const Region& region)> takes) {
  const ValueId id = norm.inputs[i];
  const std::int32_t producer = graph.value(id).producer;
  if (producer < 0 || graph.uses(id).size() != 1 || is_output(graph, id)) return false;
  const Node& product = graph.nodes()[static_cast<std::size_t>(producer)];
  if (product.super_kernel != norm.super_kernel || (product.op != OpKind::linear && product.op != OpKind::scaled_mm))
    return false;
  const bool quantizes = product.op == OpKind::scaled_mm || norm.op == OpKind::add_rms_norm_quant;
  Region region(problem_of(graph, product, maximum, target));
  if (max_rows(region.problem(), 0) > (quantizes ? most_quantized_rows : most_rows)) return false;
  const std::array types{graph.value(norm.inputs[x]).type, graph.value(norm.inputs[residual]).type};
  std::vector<RegionInput> inputs(2, RegionInput::inside(0, 0, Rounding::strict));
  inputs[1 - i] = RegionInput::outside(region.operands.size());
  region.nodes.push_back({problem_of(OpKind::add, types, {}, maximum, target), std::move(inputs)});
  region.operands.push_back({1, static_cast<std::int32_t>(1 - i)});
  region.results = {{1, 0}};
  return takes(region);
}

bool is_of_float32(const Graph& graph, const Node& node) {
  const auto is_f32 = [&](ValueId id) { return graph.value(id).type.dtype == DType::f32; };
  const TensorType &a = graph.value(node.inputs[x]).type, &b = graph.value(node.inputs[residual]).type;
  return a.dims == b.dims && is_f32(node.inputs[x]) && is_f32(node.inputs[residual]) && is_f32(node.outputs[sum]);
}

}  // namespace

SplitNodes split_sums(const Graph& graph, const SymbolValues& maximum, const Target* target,
                      FunctionRef<bool(const Region& region)> takes) {
  GraphEditor editor(graph);
  std::size_t count = 0;
  for (std::size_t n = 0; target != nullptr && n < graph.nodes().size(); ++n) {
    const Node& before = graph.nodes()[n];
    if ((before.op != OpKind::add_rms_norm && before.op != OpKind::add_rms_norm_quant) || !is_of_float32(graph, before))
      continue;
    if (!is_taken(graph, before, x, maximum, target, takes) &&
        !is_taken(graph, before, residual, maximum, target, takes))
      continue;
    const auto place = static_cast<NodeId>(n);
    const Node node = editor.node(place);  // whose residual may be a sum that was split
    const OpKind norm = node.op == OpKind::add_rms_norm ? OpKind::rms_norm : OpKind::rms_norm_quant;
    Attributes attributes = known_attributes(node.attributes, norm);
    attributes.set("out_dtype", std::string(name_of(editor.value(node.outputs[y]).type.dtype)));
    const std::vector<ValueId> added =
        editor.insert_before(place, OpKind::add, {node.inputs[x], node.inputs[residual]}, {}, node.scope);
    std::vector<ValueId> operands = added;
    operands.insert(operands.end(), node.inputs.begin() + weight, node.inputs.end());
    const std::vector<ValueId> normed = editor.insert_before(place, norm, operands, attributes, node.scope);
    std::vector<std::pair<ValueId, ValueId>> results{{node.outputs[y], normed[0]}, {node.outputs[sum], added[0]}};
    for (std::size_t i = sum + 1; i < node.outputs.size(); ++i) results.emplace_back(node.outputs[i], normed[i - 1]);
    editor.replace(std::span(&place, 1), results);
    ++count;
  }
  return {count == 0 ? graph : editor.finish(), count};
}

}  // namespace cermet
