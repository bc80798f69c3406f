// Finds patterns in graphs.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "format/element.hpp"
#include "graph/rewrite/pattern.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::size_t most_uniform_bytes = 1 << 14;  // looked through again and again

bool is_last_axis(const AttributeValue& value, int rank) {
  if (const auto* axis = std::get_if<std::int64_t>(&value)) return wrap_axis(*axis, rank) == rank - 1;
  const auto* axes = std::get_if<Ints>(&value);
  if (!axes) return false;
  return axes->size() == 1 ? wrap_axis(axes->front(), rank) == rank - 1 : axes->empty() && rank == 1;
}

class PatternMatcher {
 public:
  PatternMatcher(const Pattern& pattern, const GraphEditor& editor, FunctionRef<bool(const Match&)> accept)
      : pattern_(pattern), editor_(editor), accept_(accept) {}

  bool from(NodeId anchor) {
    if (!may_fit(pattern_.nodes.size() - 1, anchor)) return false;
    match_.editor = &editor_;
    match_.pattern = &pattern_;
    match_.nodes.assign(pattern_.nodes.size(), no_node);
    match_.values.assign(pattern_.names.size(), {});
    match_.scalars.assign(pattern_.names.size(), 0);
    goals_.push_back({pattern_.nodes.size() - 1, anchor});
    return solve(0);
  }

 private:
  struct Goal {
    std::size_t node;
    NodeId found;
  };

  /// Operators two levels deep, in either order: what most places fail at.
  bool may_fit(std::size_t p, NodeId n) const {
    const PatternNode& wanted = pattern_.nodes[p];
    const Node& node = editor_.node(n);
    if (node.op != wanted.op) return false;
    const bool swaps = definition(node.op).commutative && node.inputs.size() == 2;
    for (std::size_t i = 0; i < wanted.operands.size(); ++i) {
      if (fits_operator(wanted.operands[i], node, i)) continue;
      if (!swaps || !fits_operator(wanted.operands[i], node, 1 - i)) return false;
    }
    return true;
  }
  bool fits_operator(const PatternName& wanted, const Node& node, std::size_t i) const {
    const ValueId id = i < node.inputs.size() ? node.inputs[i] : ValueId{};
    if (wanted.kind != PatternName::Kind::value) return !id || editor_.value(id).kind == ValueKind::constant;
    const int maker = pattern_.producers[static_cast<std::size_t>(wanted.slot)];
    if (maker < 0 || !id) return true;
    const NodeId producer = editor_.producer(id);
    return producer != no_node && editor_.node(producer).op == pattern_.nodes[static_cast<std::size_t>(maker)].op;
  }

  bool solve(std::size_t goal) {
    if (goal == goals_.size()) return accept_(match_);
    const auto [p, n] = goals_[goal];
    if (match_.nodes[p] != no_node) return match_.nodes[p] == n && solve(goal + 1);
    const PatternNode& wanted = pattern_.nodes[p];
    const Node& node = editor_.node(n);
    if (node.op != wanted.op || (pattern_.is_distinct && std::ranges::find(match_.nodes, n) != match_.nodes.end()))
      return false;
    if (!has_attributes(wanted, n)) return false;
    match_.nodes[p] = n;
    const bool swaps = definition(node.op).commutative && node.inputs.size() == 2 && node.inputs[0] != node.inputs[1];
    for (int order = 0; order <= (swaps ? 1 : 0); ++order) {
      const std::size_t trail = trail_.size(), goals = goals_.size();
      if (bind_results(wanted, node) && bind_operands(wanted, node, order == 1) && solve(goal + 1)) return true;
      goals_.resize(goals);
      for (; trail_.size() > trail; trail_.pop_back()) match_.values[static_cast<std::size_t>(trail_.back())] = {};
    }
    match_.nodes[p] = no_node;
    return false;
  }

  bool has_attributes(const PatternNode& wanted, NodeId n) const {
    if (wanted.attributes.size() == 0) return true;
    const Problem problem = problem_of(editor_, n);
    return std::ranges::all_of(wanted.attributes, [&](const auto& attribute) {
      const AttributeValue* found = problem.attributes.find(attribute.first);
      if (!found) return false;
      const auto* text = std::get_if<std::string>(&attribute.second);
      if (text && *text == "last") return is_last_axis(*found, problem.input(0).rank());
      const auto *exactly = std::get_if<double>(&attribute.second), *number = std::get_if<double>(found);
      return exactly && number ? std::abs(*exactly - *number) <= 1e-6 * std::abs(*exactly) : *found == attribute.second;
    });
  }

  bool bind(const PatternName& name, ValueId id) {
    ValueId& bound = match_.values[static_cast<std::size_t>(name.slot)];
    if (bound) return bound == id;
    bound = id;
    trail_.push_back(name.slot);
    return true;
  }

  bool bind_results(const PatternNode& wanted, const Node& node) {
    for (std::size_t o = 0; o < std::max(wanted.results.size(), node.outputs.size()); ++o) {
      const ValueId id = o < node.outputs.size() ? node.outputs[o] : ValueId{};
      const bool given = o < wanted.results.size() && wanted.results[o].kind != PatternName::Kind::absent;
      if (!given && id) return false;
      if (!given) continue;
      if (!id && !wanted.results[o].optional) return false;
      if (id && !bind(wanted.results[o], id)) return false;
    }
    return true;
  }

  bool bind_operands(const PatternNode& wanted, const Node& node, bool swapped) {
    for (std::size_t i = 0; i < std::max(wanted.operands.size(), node.inputs.size()); ++i) {
      const std::size_t from = swapped ? 1 - i : i;
      const ValueId id = from < node.inputs.size() ? node.inputs[from] : ValueId{};
      if (!bind_operand(
              i < wanted.operands.size() ? wanted.operands[i] : PatternName{.kind = PatternName::Kind::absent}, id))
        return false;
    }
    return true;
  }

  bool bind_operand(const PatternName& wanted, ValueId id) {
    using enum PatternName::Kind;
    if (wanted.kind == absent) return !id;
    if (!id) return wanted.optional;
    const Value& held = editor_.value(id);
    if (wanted.kind == number) {
      const auto element = uniform_value(held);
      return element && is_number(*element, wanted.number, held.type.dtype);
    }
    if (wanted.kind == constant) return held.kind == ValueKind::constant && bind(wanted, id);
    if (wanted.kind == scalar) {
      const auto element = uniform_value(held);
      if (!element) return false;
      double& captured = match_.scalars[static_cast<std::size_t>(wanted.slot)];
      if (match_.values[static_cast<std::size_t>(wanted.slot)]) return captured == *element;
      captured = *element;
      return bind(wanted, id);
    }
    if (!bind(wanted, id)) return false;
    const int maker = pattern_.producers[static_cast<std::size_t>(wanted.slot)];
    if (maker < 0) return true;
    const NodeId producer = editor_.producer(id);
    if (producer == no_node || editor_.node(producer).op != pattern_.nodes[static_cast<std::size_t>(maker)].op)
      return false;
    goals_.push_back({static_cast<std::size_t>(maker), producer});
    return true;
  }

  const Pattern& pattern_;
  const GraphEditor& editor_;
  FunctionRef<bool(const Match&)> accept_;
  Match match_;
  std::vector<Goal> goals_;
  std::vector<int> trail_;  ///< slots in the order in which they were bound
};

}  // namespace

bool find_matches(const Pattern& pattern, const GraphEditor& editor, NodeId anchor,
                  FunctionRef<bool(const Match&)> accept) {
  return PatternMatcher(pattern, editor, accept).from(anchor);
}

std::optional<double> uniform_value(const Value& value) {
  const TensorData* data = value.kind == ValueKind::constant ? value.data() : nullptr;
  if (!data) return {};
  const std::span<const std::byte> bytes = data->bytes();
  const std::size_t size = size_of(value.type.dtype);
  if (bytes.size() < size || bytes.size() > most_uniform_bytes) return {};
  if (bytes.size() > size && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0) return {};
  const double found = format::load_element(bytes.data(), value.type.dtype, 0);
  if (!is_floating(value.type.dtype) && std::abs(found) >= 0x1p53) return {};  // not exactly this
  return found;
}

bool is_number(double found, double wanted, DType dtype) {
  if (found == wanted) return wanted != 0 || !std::signbit(found);  // x - (-0) is not x where x is -0
  if (wanted * 1024 == std::round(wanted * 1024) || !is_floating(dtype))
    return false;  // a number that every type holds
  double rounded = 0;
  std::array<std::byte, 8> element{};
  format::store_element(element.data(), dtype, 0, wanted);
  rounded = format::load_element(element.data(), dtype, 0);
  return found == rounded || std::abs(found - wanted) <= 1e-6 * std::abs(wanted);
}

}  // namespace cermet
