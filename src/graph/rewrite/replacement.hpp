// What a rule of texts would put in the place of a match: known before the graph is touched.
#pragma once

#include <variant>

#include "graph/rewrite/rule.hpp"

namespace cermet {

struct Replacement {
  /// An operand: a value of the graph, a result of an earlier node of the replacement, or a number.
  struct Result {
    std::size_t node, output;
  };
  using Operand = std::variant<ValueId, Result, double>;
  struct MadeNode {
    Problem problem;
    std::vector<Operand> inputs;
    Attributes attributes;
    bool is_constant = false;  ///< of constants: computed while weights load
  };
  std::vector<MadeNode> nodes;
  std::vector<std::pair<ValueId, Operand>> results;  ///< an old value, and what takes its place
  std::vector<NodeId> dying;                         ///< nodes of the match that nothing reads any more
  DType dtype{};                                     ///< of numbers
  double saved = 0;                                  ///< work
};

/// The replacement where the rule fits the match: types, side condition, rounding class, and every old result has the
/// type of the new one.
std::optional<Replacement> replacement_of(const Rule& rule, const Match& match, RoundingClass most,
                                          const SymbolValues& sizes);
/// Puts it in.
void put_in(const Replacement& replacement, GraphEditor& editor, NodeId anchor);

}  // namespace cermet
