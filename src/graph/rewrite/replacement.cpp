#include "graph/rewrite/replacement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "format/element.hpp"
#include "graph/memory.hpp"
#include "graph/rewrite/cost.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// Whether one of the nodes `from` needs the results of one of `wanted`, by way of any others.
bool depends_on(const GraphEditor& editor, std::vector<NodeId> from, std::span<const NodeId> wanted) {
  std::set<NodeId> seen(from.begin(), from.end());
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (const ValueId input : editor.node(from[i]).inputs) {
      const NodeId before = input ? editor.producer(input) : no_node;
      if (before == no_node || !seen.insert(before).second) continue;
      if (std::ranges::find(wanted, before) != wanted.end()) return true;
      from.push_back(before);
    }
  }
  return false;
}

/// Whether a node outside the match updates memory that new nodes will read later than the old ones did. One that only
/// needs the match's results comes later.
bool is_updated_elsewhere(const GraphEditor& editor, const Match& match, ValueId id) {
  return std::ranges::any_of(editor.uses(id), [&](Use use) {
    if (std::ranges::find(match.nodes, use.node) != match.nodes.end()) return false;
    const Node& node = editor.node(use.node);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (overwritten_by(node, o) == id)
        return !depends_on(editor, {use.node}, match.nodes) ||
               depends_on(editor, match.nodes, std::array{static_cast<NodeId>(use.node)});
    return false;
  });
}

/// Attributes that equal the schema's default are left out.
Attributes without_defaults(OpKind op, const Attributes& attributes) {
  Attributes given;
  for (const auto& [name, value] : attributes) {
    const auto& specs = definition(op).attributes;
    const auto spec = std::ranges::find(specs, name, &AttributeSpec::name);
    if (spec == specs.end() || spec->fallback != value) given.set(name, value);
  }
  return given;
}

std::vector<std::byte> element_of(DType dtype, double value) {
  std::vector<std::byte> bytes(size_of(dtype));
  format::store_element(bytes.data(), dtype, 0, value);
  return bytes;
}

/// Whether the type holds a computed number well: with the precision that its numbers have.
bool holds_number(DType dtype, double number) {
  if (!std::isfinite(number)) return false;
  const std::vector<std::byte> bytes = element_of(dtype, number);
  const double stored = format::load_element(bytes.data(), dtype, 0);
  if (!is_floating(dtype)) return stored == number && std::abs(number) < 0x1p53;
  const double least = dtype == DType::f16 ? 6.2e-5 : dtype == DType::f64 ? 1e-300 : 1.2e-38;
  return number == 0 || (std::isfinite(stored) && std::abs(number) >= least);
}

/// The type that a match computes in: that of its result, or of what a comparison compares.
DType dtype_of(const Match& match) {
  const Node& anchor = match.editor->node(match.nodes.back());
  const DType result = match.editor->value(anchor.outputs[0]).type.dtype;
  if (result != DType::boolean || anchor.inputs.empty()) return result;
  return match.editor->value(anchor.inputs[0]).type.dtype;
}

bool accepts_types(const Rule& rule, const Match& match, DType dtype, RoundingClass most) {
  if (rule.rule_class == RuleClass::operators) return true;
  const bool whole = is_integer(dtype);
  switch (rule.condition.types()) {
    case Condition::Types::any: return rule.rounding <= most;
    case Condition::Types::integer: return whole;
    case Condition::Types::number:
      if (whole) return true;  // integers wrap, so that algebra keeps every bit
      break;
    case Condition::Types::real: break;
  }
  if (!is_floating(dtype) || dtypes::fp8.contains(dtype)) return false;
  if (rule.rounding == RoundingClass::fast && dtype == DType::f16)
    return false;  // whose range other formulas leave soon
  RoundingClass rounding = rule.rounding;
  if (rounding == RoundingClass::strict && size_of(dtype) < 4 && match.nodes.size() > 1)
    rounding = RoundingClass::fast;  // it rounded in between
  return rounding <= most;
}

class ReplacementMaker {
 public:
  ReplacementMaker(const Rule& rule, const Match& match, const SymbolValues& sizes)
      : rule_(rule), match_(match), sizes_(sizes) {}

  std::optional<Replacement> make(DType dtype) {
    made_.dtype = dtype;
    made_at_.resize(rule_.after.names.size());
    for (const PatternNode& node : rule_.after.nodes)
      if (!add(node)) return {};
    if (!replace_results()) return {};
    find_dying();
    for (const NodeId n : made_.dying) {
      Problem problem = problem_of(editor(), n);
      problem.maximum = sizes_;
      made_.saved += work_of(problem);
    }
    return std::move(made_);
  }

 private:
  const GraphEditor& editor() const { return *match_.editor; }

  std::optional<Replacement::Operand> operand(const PatternName& name) {
    using enum PatternName::Kind;
    if (name.kind == number) return name.number;
    if (name.kind == expression) {
      const double value = name.expression.value(numbers_of(name.expression));
      return holds_number(made_.dtype, value) ? std::optional<Replacement::Operand>(value) : std::nullopt;
    }
    if (name.kind == absent) return ValueId{};
    const auto slot = static_cast<std::size_t>(name.slot);
    if (made_at_[slot]) return *made_at_[slot];
    const ValueId id = slot < match_.values.size() ? match_.values[slot] : ValueId{};
    if (id && is_updated_elsewhere(editor(), match_, id)) return {};
    return id;
  }

  /// What an expression reads: captured numbers, and of other values the length of their rows.
  std::vector<double> numbers_of(const ScalarExpression& expression) const {
    std::vector<double> numbers = match_.scalars;
    for (const int slot : expression.slots()) {
      const ValueId id = match_.values[static_cast<std::size_t>(slot)];
      if (rule_.condition.is_captured(slot) || !id) continue;
      const Dims& dims = editor().value(id).type.dims;
      numbers[static_cast<std::size_t>(slot)] =
          !dims.empty() && dims.back().is_constant() ? static_cast<double>(dims.back().constant()) : NAN;
    }
    return numbers;
  }

  std::optional<TensorType> type_of(const Replacement::Operand& operand) const {
    if (std::holds_alternative<double>(operand)) return TensorType{made_.dtype, {}};
    if (const auto* result = std::get_if<Replacement::Result>(&operand))
      return made_.nodes[result->node].problem.outputs[result->output];
    const ValueId id = std::get<ValueId>(operand);
    return id ? std::optional(editor().value(id).type) : std::nullopt;
  }

  bool is_constant(const Replacement::Operand& operand) const {
    if (std::holds_alternative<double>(operand)) return true;
    if (const auto* result = std::get_if<Replacement::Result>(&operand)) return made_.nodes[result->node].is_constant;
    const ValueId id = std::get<ValueId>(operand);
    return !id || editor().value(id).kind == ValueKind::constant;
  }

  bool add(const PatternNode& node) {
    Replacement::MadeNode made;
    std::vector<std::optional<TensorType>> types;
    for (const PatternName& name : node.operands) {
      const auto found = operand(name);
      if (!found) return false;
      made.inputs.push_back(*found);
      types.push_back(type_of(*found));
    }
    const auto attributes = attributes_of(node);
    if (!attributes) return false;
    made.attributes = without_defaults(node.op, *attributes);
    try {
      made.problem = make_problem(definition(node.op), std::move(types), made.attributes);
    } catch (const Error&) {  // the operator knows best what it does not take
      return false;
    }
    made.is_constant = std::ranges::all_of(made.inputs, [this](const auto& input) { return is_constant(input); });
    made_.saved -= work(made);
    for (std::size_t o = 0; o < node.results.size() && o < made.problem.outputs.size(); ++o)
      if (node.results[o].slot >= 0)
        made_at_[static_cast<std::size_t>(node.results[o].slot)] = Replacement::Result{made_.nodes.size(), o};
    made_.nodes.push_back(std::move(made));
    return true;
  }

  /// A constant costs its bytes, because it is held beside what it is made of, where others read that.
  double work(Replacement::MadeNode& made) const {
    made.problem.maximum = sizes_;
    if (!made.is_constant) return work_of(made.problem);
    const bool is_held_twice = std::ranges::any_of(made.inputs, [this](const Replacement::Operand& input) {
      const auto* id = std::get_if<ValueId>(&input);
      return id && *id && (editor().is_output(*id) || editor().uses(*id).size() > 1);
    });
    return is_held_twice ? bytes_of(made.problem.outputs[0], sizes_) : 0;
  }

  /// Those of the text; else those that the row's function gives, if they are this operator's; else those of the
  /// pattern's nodes of this operator, which must all be alike.
  std::optional<Attributes> attributes_of(const PatternNode& node) const {
    if (node.attributes.size() > 0 || definition(node.op).attributes.empty()) return node.attributes;
    if (rule_.attributes) {
      Attributes given = rule_.attributes(match_);
      const auto& specs = definition(node.op).attributes;
      const auto is_known = [&](const auto& attribute) {
        return std::ranges::find(specs, attribute.first, &AttributeSpec::name) != specs.end();
      };
      if (std::ranges::all_of(given, is_known)) return given;
    }
    std::optional<Attributes> alike;
    for (std::size_t p = 0; p < match_.nodes.size(); ++p) {
      if (rule_.before.nodes[p].op != node.op) continue;
      Attributes own = match_.attributes(p);
      if (alike && *alike != own) return {};
      alike = std::move(own);
    }
    return alike ? alike : Attributes();
  }

  bool replace_results() {
    const auto replace = [this](int slot, const Replacement::Operand& by) {
      const ValueId from = match_.values[static_cast<std::size_t>(slot)];
      if (!from) return true;
      if (type_of(by) != editor().value(from).type) return false;
      made_.results.emplace_back(from, by);
      return true;
    };
    for (std::size_t slot = 0; slot < match_.values.size(); ++slot)
      if (made_at_[slot] && !replace(static_cast<int>(slot), *made_at_[slot])) return false;
    if (rule_.after.roots.empty()) return true;
    const auto root = operand(rule_.after.roots[0]);
    return root && replace(rule_.before.nodes.back().results[0].slot, *root);
  }

  /// From the anchor back: nodes whose results are replaced, or read by dying nodes alone. What new nodes read stays:
  /// two names of a pattern may be one value.
  void find_dying() {
    const auto replaced = [this](ValueId id) {
      return std::ranges::find(made_.results, id, &std::pair<ValueId, Replacement::Operand>::first) !=
             made_.results.end();
    };
    const auto is_read = [this](ValueId id) {
      const auto is = [id](const Replacement::Operand& operand) {
        const auto* read = std::get_if<ValueId>(&operand);
        return read && *read == id;
      };
      return std::ranges::any_of(
                 made_.nodes,
                 [&](const Replacement::MadeNode& node) { return std::ranges::any_of(node.inputs, is); }) ||
             std::ranges::any_of(made_.results, is, &std::pair<ValueId, Replacement::Operand>::second);
    };
    const auto is_dying = [this](NodeId n) { return std::ranges::find(made_.dying, n) != made_.dying.end(); };
    for (std::size_t p = match_.nodes.size(); p-- > 0;) {
      const NodeId n = match_.nodes[p];
      const bool dies = std::ranges::all_of(editor().node(n).outputs, [&](ValueId id) {
        return replaced(id) || (!is_read(id) && !editor().is_output(id) &&
                                std::ranges::all_of(editor().uses(id), [&](Use use) { return is_dying(use.node); }));
      });
      if (dies && !is_dying(n)) made_.dying.push_back(n);
    }
  }

  const Rule& rule_;
  const Match& match_;
  const SymbolValues& sizes_;
  Replacement made_;
  std::vector<std::optional<Replacement::Operand>> made_at_;  ///< by slot: which result of a new node has the name
};

}  // namespace

std::optional<Replacement> replacement_of(const Rule& rule, const Match& match, RoundingClass most,
                                          const SymbolValues& sizes) {
  const DType dtype = dtype_of(match);
  if (!accepts_types(rule, match, dtype, most) || !rule.condition.holds(match) || (rule.fits && !rule.fits(match)))
    return {};
  return ReplacementMaker(rule, match, sizes).make(dtype);
}

void put_in(const Replacement& replacement, GraphEditor& editor, NodeId anchor) {
  const std::string scope = editor.node(anchor).scope;
  std::vector<std::vector<ValueId>> made;
  const auto value = [&](const Replacement::Operand& operand) -> ValueId {
    if (const auto* number = std::get_if<double>(&operand))
      return editor.add_constant("number",
                                 TensorData(TensorType{replacement.dtype, {}}, element_of(replacement.dtype, *number)));
    if (const auto* result = std::get_if<Replacement::Result>(&operand)) return made[result->node][result->output];
    return std::get<ValueId>(operand);
  };
  NodeId last = no_node;
  for (const Replacement::MadeNode& node : replacement.nodes) {
    std::vector<ValueId> inputs;
    for (const Replacement::Operand& operand : node.inputs) inputs.push_back(value(operand));
    if (node.is_constant) {
      const std::string name = editor.value(inputs.front()).name + "." + std::string(node.problem.op->name);
      made.push_back({editor.add_constant(
          name, ConstantExpression{node.problem.op->kind, std::move(inputs), node.attributes, 0})});
      continue;
    }
    const NodeId id = editor.next_id();
    made.push_back(editor.insert_after(last == no_node ? anchor : last, node.problem.op->kind, std::move(inputs),
                                       node.attributes, scope));
    last = id;
  }
  std::vector<std::pair<ValueId, ValueId>> results;
  for (const auto& [from, by] : replacement.results) results.emplace_back(from, value(by));
  editor.replace(replacement.dying, results);
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto [from, to] = results[r];
    const bool is_new = std::holds_alternative<Replacement::Result>(replacement.results[r].second) &&
                        editor.value(to).kind == ValueKind::intermediate;
    if (is_new && editor.producer(from) == no_node) editor.rename(to, editor.value(from).name);
  }
}

}  // namespace cermet
