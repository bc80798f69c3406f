#include "fuse/mode.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fuse/mapping.hpp"
#include "graph/rewrite/rule.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::array modes{
    FusionModeInfo{FusionMode::none, "none",
                   "every operator by itself, no rewrite rules; images still have their channels last where "
                   "convolutions are near"},
    FusionModeInfo{FusionMode::pattern, "pattern",
                   "what a compiler of fixed patterns does: rules that put one operator in the place of several; bias, "
                   "activation and residual behind a product"},
    FusionModeInfo{FusionMode::published, "published",
                   "whatever DNNFusion's table of mapping types (PLDI 2021) allows, as far as kernels take it"},
    FusionModeInfo{FusionMode::full, "full",
                   "everything, also what the table excludes: norms into the products that read them, products of one "
                   "operand stacked"},
};
static_assert(std::ranges::is_sorted(modes, {}, &FusionModeInfo::mode));

/// Bias, activation, residual.
constexpr std::size_t most_behind_product = 3;

bool is_many_to_many(const PatternNode& node) {
  return std::ranges::any_of(definition(node.op).inputs,
                             [](const OperandSpec& operand) { return operand.mapping == Mapping::many_to_many; });
}

/// Nodes after the anchor that a fixed pattern has: additions and operators of one operand.
std::string why_no_pattern(const Region& region) {
  const auto is_elementwise = [](const RegionNode& node) { return mapping_of(node.problem) <= Mapping::one_to_many; };
  if (is_elementwise(region.nodes[static_cast<std::size_t>(region.anchor)]))
    return "no pattern is a chain of elementwise operators";
  if (region.anchor > 0) return "no pattern computes operands on their way to a product";
  if (region.nodes.size() > 1 + most_behind_product)
    return "patterns have a bias, an activation and a residual behind a product, and no more";
  if (region.results.size() > region.nodes[0].problem.outputs.size()) return "no pattern keeps a value beside its last";
  for (const RegionNode& node : region.nodes) {
    if (&node == &region.nodes.front() || node.problem.op->kind == OpKind::add) continue;
    if (node.problem.inputs.size() != 1 || !is_elementwise(node))
      return fmt::format("no pattern has {} behind a product", node.problem.op->name);
  }
  return {};
}

}  // namespace

std::span<const FusionModeInfo> fusion_modes() { return modes; }

std::string_view name_of(FusionMode mode) { return modes[static_cast<std::size_t>(mode)].name; }

FusionMode fusion_mode_named(std::string_view option, std::string_view name) {
  const auto found = std::ranges::find(modes, name, &FusionModeInfo::name);
  std::string names;
  for (const FusionModeInfo& info : modes) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  require(found != modes.end(), "{}: expected one of {}, found {}", option, names, quote(name));
  return found->mode;
}

bool applies(FusionMode mode, const Rule& rule) {
  const std::vector<PatternNode>& before = rule.before.nodes;  // empty where a rule is code
  switch (mode) {
    case FusionMode::none: return false;
    case FusionMode::pattern:
      return !before.empty() && (rule.rule_class == RuleClass::operators || rule.rule_class == RuleClass::raising);
    case FusionMode::published:  // two of them are an X of the table; of rules that are code, those of a transposition
                                 // only move elements
      return before.empty() ? rule.anchor == OpKind::transpose : std::ranges::count_if(before, is_many_to_many) <= 1;
    case FusionMode::full: break;
  }
  return true;
}

std::string why_apart(FusionMode mode, const Region& region) {
  switch (mode) {
    case FusionMode::none: return "mode none joins nothing";
    case FusionMode::pattern: return why_no_pattern(region);
    case FusionMode::published:
      if (const auto edge = forbidden_edge(region))
        return fmt::format("{} after {}", name_of(edge->second), name_of(edge->first));
      return {};
    case FusionMode::full: break;
  }
  return {};
}

}  // namespace cermet
