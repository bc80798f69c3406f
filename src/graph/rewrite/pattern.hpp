// Small graphs of operators, written as text and found in a graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/editor.hpp"

namespace cermet {

/// "y = rms_norm(x, w?)": results, operator, operands. A name with a question mark may be absent.
struct PatternNode {
  struct Name {
    std::string text;  ///< "-" for an operand that must be absent
    bool optional = false;
  };
  OpKind op{};
  std::vector<Name> results, operands;  ///< operands behind the last are absent, too
};

/// Operators in an order in which they run; the last is the anchor, and everything else is found from it through its operands.
struct Pattern {
  std::vector<PatternNode> nodes;
  /// "y = rms_norm(x, w?); q, s? = dynamic_quant(y)". Throws Error(invalid_argument) that quotes the text.
  static Pattern parse(std::string_view text);
};

/// A place where a pattern was found.
struct Match {
  const GraphEditor* editor = nullptr;
  std::vector<NodeId> nodes;              ///< by node of the pattern
  std::map<std::string, ValueId> values;  ///< by name; absent ones are not in it

  bool has(const std::string& name) const { return values.contains(name); }
  ValueId at(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? ValueId{} : found->second;
  }
  const TensorType& type(const std::string& name) const { return editor->value(at(name)).type; }
  /// Attributes of a node of the pattern, defaults included.
  Attributes attributes(std::size_t node) const;
};

/// The pattern with its anchor at this node, where it is there: operators, operands (those of a commutative operator in either order) and the results that it
/// names agree, a name is one value wherever it stands, and what is not in `kept` is read by the pattern's nodes alone.
std::optional<Match> find_match(const Pattern& pattern, const GraphEditor& editor, NodeId anchor, const std::vector<std::string>& kept);

}  // namespace cermet
