#include "kernel/cuda/peer/all_reduce_prologue.hpp"

#include <algorithm>

namespace cermet::cuda {
namespace {

std::int32_t index_without(std::int32_t node, std::int32_t gone) { return node > gone ? node - 1 : node; }

/// The region without a node whose result becomes an operand in place of the node's.
Region without(const Region& region, std::int32_t gone, std::size_t operand) {
  Region rows = region;
  rows.nodes.erase(rows.nodes.begin() + gone);
  rows.anchor = index_without(region.anchor, gone);
  for (RegionNode& node : rows.nodes)
    for (RegionInput& input : node.inputs) {
      if (!input.is_inside()) continue;
      if (input.index == gone) input = RegionInput::outside(operand);
      else input.index = index_without(input.index, gone);
    }
  for (std::size_t o = 0; o < rows.operands.size(); ++o)  // the first that reads each
    for (std::size_t n = rows.nodes.size(); n-- > 0;)
      for (std::size_t i = rows.nodes[n].inputs.size(); i-- > 0;)
        if (rows.nodes[n].inputs[i] == RegionInput::outside(o))
          rows.operands[o] = {static_cast<std::int32_t>(n), static_cast<std::int32_t>(i)};
  std::erase_if(rows.results, [&](const RegionPlace& result) { return result.node == gone; });
  for (RegionPlace& result : rows.results) result.node = index_without(result.node, gone);
  return rows;
}

}  // namespace

std::optional<AllReducePrologue> all_reduce_prologue(const Region& region) {
  const auto sums = [](const RegionNode& node) {
    return node.problem.op->kind == OpKind::all_reduce && node.problem.attributes.integer("ranks") > 1;
  };
  if (region.is_single() || std::ranges::count_if(region.nodes, sums) != 1) return std::nullopt;
  const auto found = std::ranges::find_if(region.nodes, sums);
  const auto node = static_cast<std::int32_t>(found - region.nodes.begin());
  if (node == region.anchor || found->inputs[0].from != RegionInput::From::outside) return std::nullopt;
  const auto operand = static_cast<std::size_t>(found->inputs[0].index);
  for (const RegionNode& each : region.nodes)  // what else reads the summand itself would read the sum
    if (&each != &*found && std::ranges::find(each.inputs, RegionInput::outside(operand)) != each.inputs.end())
      return std::nullopt;
  AllReducePrologue parts{found->problem, without(region, node, operand), operand};
  std::size_t next = 0;
  for (std::size_t r = 0; r < region.results.size(); ++r) {
    const bool is_sum = region.results[r].node == node;
    if (is_sum) parts.result = r;
    parts.results.push_back(is_sum ? std::nullopt : std::optional(next++));
  }
  return parts;
}

}  // namespace cermet::cuda
