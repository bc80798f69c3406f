#include "op/schema/region.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace cermet {
namespace {

/// "n1 (linear)".
std::string node_text(const Region& region, std::size_t n) {
  return fmt::format("n{} ({})", n, region.nodes[n].problem.op->name);
}

/// A result of a node: "n0", and "n0.1" where it has several.
std::string result_text(const Region& region, std::int32_t node, std::int32_t output) {
  return region.nodes[static_cast<std::size_t>(node)].problem.outputs.size() > 1 ? fmt::format("n{}.{}", node, output)
                                                                                 : fmt::format("n{}", node);
}

std::string input_text(const Region& region, const RegionNode& node, std::size_t i) {
  const RegionInput& input = node.inputs[i];
  if (input.is_inside())
    return fmt::format("{} {}", name_of(input.rounding), result_text(region, input.index, input.output));
  return input.from == RegionInput::From::outside && node.problem.has(i)
             ? fmt::format("${}: {}", input.index, node.problem.input(i).to_string())
             : "-";
}

std::string node_body(const Region& region, const RegionNode& node) {
  std::string text = fmt::format("{}(", node.problem.op->name);
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : "", input_text(region, node, i));
  text += ")";
  const char* separator = " {";
  for (const auto& [name, value] : node.problem.attributes) {
    text += fmt::format("{}{} = {}", separator, name, cermet::to_string(value));
    separator = ", ";
  }
  return node.problem.attributes.size() ? text + "}" : text;
}

std::optional<std::string> input_fault(const Region& region, std::size_t n, std::size_t i) {
  using From = RegionInput::From;
  const RegionNode& node = region.nodes[n];
  const RegionInput& input = node.inputs[i];
  const auto place = [&] { return fmt::format("{}, operand {}", node_text(region, n), i); };
  if (input.from == From::nowhere)
    return node.problem.has(i) ? std::optional(fmt::format("{}: expected to be wired, found nothing", place()))
                               : std::nullopt;
  if (input.from == From::outside) {
    if (input.index < 0 || static_cast<std::size_t>(input.index) >= region.operands.size())
      return fmt::format("{}: expected one of {} operands of the region, found ${}", place(), region.operands.size(),
                         input.index);
    const RegionPlace& first = region.operands[static_cast<std::size_t>(input.index)];
    const Problem& reader = region.nodes[static_cast<std::size_t>(first.node)].problem;
    if (reader.inputs[static_cast<std::size_t>(first.index)] == node.problem.inputs[i]) return std::nullopt;
    return fmt::format("{}: expected the type of ${}, found {}", place(), input.index,
                       node.problem.has(i) ? node.problem.input(i).to_string() : "none");
  }
  if (input.index < 0 || static_cast<std::size_t>(input.index) >= n)
    return fmt::format("{}: expected a node before it, found n{}: a cycle", place(), input.index);
  const Problem& maker = region.nodes[static_cast<std::size_t>(input.index)].problem;
  if (input.output < 0 || static_cast<std::size_t>(input.output) >= maker.outputs.size())
    return fmt::format("{}: expected one of {} results of n{}, found number {}", place(), maker.outputs.size(),
                       input.index, input.output);
  if (input.rounding == Rounding::unset)
    return fmt::format("{}: expected a rounding contract, strict or fast, found none", place());
  const TensorType& made = maker.outputs[static_cast<std::size_t>(input.output)];
  if (node.problem.inputs[i] == made) return std::nullopt;
  return fmt::format("{}: expected {}, found {}", place(), made.to_string(),
                     node.problem.has(i) ? node.problem.input(i).to_string() : "none");
}

/// Whether some node or the outside reads a result of the node.
bool is_read(const Region& region, std::size_t n) {
  const auto is_here = [&](const RegionInput& input) {
    return input.is_inside() && static_cast<std::size_t>(input.index) == n;
  };
  return std::ranges::any_of(region.results,
                             [&](const RegionPlace& place) { return static_cast<std::size_t>(place.node) == n; }) ||
         std::ranges::any_of(region.nodes,
                             [&](const RegionNode& node) { return std::ranges::any_of(node.inputs, is_here); });
}

std::optional<std::string> place_fault(const Region& region, const RegionPlace& place, std::string_view what,
                                       bool is_operand) {
  if (place.node < 0 || static_cast<std::size_t>(place.node) >= region.nodes.size())
    return fmt::format("{}: expected one of {} nodes, found n{}", what, region.nodes.size(), place.node);
  const Problem& problem = region.nodes[static_cast<std::size_t>(place.node)].problem;
  const std::size_t count = is_operand ? problem.inputs.size() : problem.outputs.size();
  if (place.index >= 0 && static_cast<std::size_t>(place.index) < count) return std::nullopt;
  return fmt::format("{}: expected one of {} of {}, found number {}", what, count,
                     node_text(region, static_cast<std::size_t>(place.node)), place.index);
}

}  // namespace

std::string_view name_of(Rounding rounding) {
  static constexpr std::string_view names[] = {"unset", "strict", "fast"};
  return names[static_cast<std::size_t>(rounding)];
}

Region::Region(Problem problem) {
  std::vector<RegionInput> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    inputs.push_back(RegionInput::outside(i));
    operands.push_back({0, static_cast<std::int32_t>(i)});
  }
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) results.push_back({0, static_cast<std::int32_t>(o)});
  nodes.push_back({std::move(problem), std::move(inputs)});
}

void Region::set_target(const Target* target) {
  for (RegionNode& node : nodes) node.problem.target = target;
}

void Region::set_maximum(const SymbolValues& maximum) {
  for (RegionNode& node : nodes) node.problem.maximum = maximum;
}

std::optional<std::size_t> Region::operand_of(std::size_t node, std::size_t input) const {
  const std::vector<RegionInput>& inputs = nodes[node].inputs;
  if (input >= inputs.size() || inputs[input].from != RegionInput::From::outside) return {};
  return static_cast<std::size_t>(inputs[input].index);
}

std::string Region::operators() const {
  std::string text;
  for (const RegionNode& node : nodes) text += fmt::format("{}{}", text.empty() ? "" : " + ", node.problem.op->name);
  return text;
}

std::string Region::to_string() const {
  if (is_single()) return problem().to_string();
  std::string text = "{";
  for (std::size_t n = 0; n < nodes.size(); ++n)
    text += fmt::format("{}n{} = {}", n ? "; " : "", n, node_body(*this, nodes[n]));
  text += fmt::format("}} anchor n{} ->", anchor);
  for (std::size_t r = 0; r < results.size(); ++r)
    text += fmt::format("{}{}", r ? ", " : " ", result_text(*this, results[r].node, results[r].index));
  return text;
}

std::string Region::key() const {
  std::string text = to_string();
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (is_constant(i)) text += fmt::format(", constant ${}", i);
  std::set<Symbol> symbols;
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (const Dim& d : has(i) ? operand_type(i).dims : Dims{})
      if (!d.is_constant()) std::ranges::copy(d.symbols(), std::inserter(symbols, symbols.end()));
  for (const Symbol& symbol : symbols) text += fmt::format(", {} <= {}", symbol.name(), maximum()[symbol]);
  return target() ? fmt::format("{}, on {} with {} SMs", text, target()->architecture(), target()->multiprocessors)
                  : text;
}

std::optional<std::string> find_fault(const Region& region) {
  if (region.anchor < 0 || static_cast<std::size_t>(region.anchor) >= region.nodes.size())
    return fmt::format("anchor: expected one of {} nodes, found n{}", region.nodes.size(), region.anchor);
  if (region.results.empty()) return "results: expected at least one, found none";
  for (const RegionPlace& place : region.operands)
    if (auto fault = place_fault(region, place, "operand", true)) return fault;
  for (const RegionPlace& place : region.results)
    if (auto fault = place_fault(region, place, "result", false)) return fault;
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const RegionNode& node = region.nodes[n];
    if (node.inputs.size() != node.problem.inputs.size())
      return fmt::format("{}: expected {} wired operands, found {}", node_text(region, n), node.problem.inputs.size(),
                         node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (auto fault = input_fault(region, n, i)) return fault;
    if (!is_read(region, n))
      return fmt::format("{}: expected a reader of its results, found none", node_text(region, n));
    if (node.problem.target != region.target())
      return fmt::format("{}: expected the target of the anchor, found another", node_text(region, n));
  }
  return std::nullopt;
}

void verify(const Region& region) {
  if (const auto fault = find_fault(region)) fail(Status::internal, "region: {}", *fault);
}

Cost cost_of(const Region& region) {
  if (region.is_single()) return cost_of(region.problem());
  Cost cost;
  std::map<std::int32_t, double> read;  // by operand; several nodes may each read a part of one
  for (const RegionNode& node : region.nodes) {
    const Cost own = cost_of(node.problem);
    cost.operations += own.operations;
    double reads = own.bytes;
    for (const TensorType& output : node.problem.outputs) reads -= bytes_of(output, region.maximum());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.problem.has(i)) continue;
      const double bytes = std::min(bytes_of(node.problem.input(i), region.maximum()), std::max(0.0, reads));
      reads -= bytes;
      if (!node.inputs[i].is_inside()) read[node.inputs[i].index] += bytes;
    }
    cost.bytes += reads;
  }
  for (const auto& [operand, bytes] : read)
    cost.bytes += std::min(bytes, bytes_of(region.operand_type(static_cast<std::size_t>(operand)), region.maximum()));
  for (std::size_t r = 0; r < region.results.size(); ++r)
    cost.bytes += bytes_of(region.result_type(r), region.maximum());
  return cost;
}

int dense_dims_of(const Region& region) {
  int most = 1;
  for (const RegionNode& node : region.nodes) most = std::max(most, dense_dims_of(node.problem));
  return most;
}

}  // namespace cermet
