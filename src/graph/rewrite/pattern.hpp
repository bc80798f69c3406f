// Small graphs of operators, written as text and found in a graph.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/editor.hpp"
#include "graph/rewrite/scalar_expression.hpp"

namespace cermet {

/// A result or an operand of a pattern's node.
struct PatternName {
  enum class Kind : std::uint8_t {
    absent,      ///< "-": not given
    value,       ///< "x": any value
    constant,    ///< "w@": a constant, whose elements may be unknown
    scalar,      ///< "c#": a constant whose elements are known and all the same
    number,      ///< "0.5": the same, of this value
    expression,  ///< "[c1 * c2]": a number that is computed of captured ones; in what takes a pattern's place
  };
  Kind kind = Kind::value;
  bool optional = false;  ///< "w?": may be absent
  int slot = -1;          ///< place of the name in Pattern::names
  double number = 0;
  ScalarExpression expression = {};
};

/// "y = rms_norm(x, w?) {eps = 1e-6}": results, operator, operands, and attributes that must be these or are given.
/// Operands after the last are absent.
struct PatternNode {
  OpKind op{};
  std::vector<PatternName> results, operands;
  Attributes attributes;  ///< an axis may be "last"
};

/// Operators in an order in which they run; the last is the anchor, and everything else is found from it through its
/// operands.
struct Pattern {
  std::vector<PatternNode> nodes;
  std::vector<std::string> names;  ///< by slot; those of results that the text does not name begin with '.'
  std::vector<int> producers;      ///< by slot: the node that makes it, -1 for an operand from outside
  std::vector<PatternName> roots;  ///< what stands alone: "x" in "mul(x, 1) -> x"
  bool is_distinct = false;        ///< two nodes of the pattern are two nodes of the graph

  /// "y = rms_norm(x, w?); q, s? = dynamic_quant(y)", or nested: "mul(add(x, 1), c#)", whose result is called y. Names
  /// of `before`, if given, keep their slots. Throws Error(invalid_argument) that quotes the text.
  static Pattern parse(std::string_view text, const Pattern* before = nullptr);
  int slot(std::string_view name) const;  ///< -1 where there is none
};

/// A place where a pattern was found.
struct Match {
  const GraphEditor* editor = nullptr;
  const Pattern* pattern = nullptr;
  std::vector<NodeId> nodes;    ///< by node of the pattern
  std::vector<ValueId> values;  ///< by slot; ValueId{} for absent ones
  std::vector<double> scalars;  ///< by slot, of captured constants

  bool has(std::string_view name) const { return static_cast<bool>(at(name)); }
  ValueId at(std::string_view name) const;
  double scalar(std::string_view name) const;
  const TensorType& type(std::string_view name) const { return editor->value(at(name)).type; }
  /// Attributes of a node of the pattern, defaults included.
  Attributes attributes(std::size_t node) const;
};

/// Calls `accept` for places of the pattern with its anchor at this node until it returns true; whether it did.
/// Operators, operands (those of a commutative operator in either order), attributes and the results that it names
/// agree, and a name is one value wherever it stands.
bool find_matches(const Pattern& pattern, const GraphEditor& editor, NodeId anchor,
                  FunctionRef<bool(const Match&)> accept);

/// The value of all elements of a constant, where they are known and the same.
std::optional<double> uniform_value(const Value& value);
/// Whether a constant's element of this type is the number, or what it is rounded to.
bool is_number(double found, double wanted, DType dtype);
/// A node's problem as it stands.
Problem problem_of(const GraphEditor& editor, NodeId n);

}  // namespace cermet
