// Rewrite rules as rows: what is looked for, what takes its place, when, and what that does to the rounding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/editor.hpp"
#include "graph/rewrite/pattern.hpp"

namespace cermet {

/// What a rule does to results. A user who asks for a class gets the classes before it, too.
enum class RoundingClass : std::uint8_t {
  exact,   ///< every result keeps its bits
  strict,  ///< nothing is rounded to a type other than before, but float32 steps in between may be done in another order, or not stored
  fast,    ///< a value in between that was rounded to a narrower type is not any more
};
std::string_view name_of(RoundingClass rounding);

/// Tries a rule where its anchor stands; whether it changed the graph.
struct Rule {
  std::string_view name;
  std::string_view summary;  ///< one line, as "before -> after" where the rule is a row of texts
  RoundingClass rounding{};
  OpKind anchor{};
  int stage = 0;  ///< rules of a later stage see what those of the stages before it left
  bool (*apply)(const Rule& rule, GraphEditor& editor, NodeId anchor) = nullptr;
  // Of a row of texts:
  Pattern before = {};
  PatternNode after = {};  ///< results of the names of those that it replaces; other results of `before` must have no reader left
  bool (*fits)(const Match&) = nullptr;
  Attributes (*attributes)(const Match&) = nullptr;
};

/// All rules, in the order in which they are tried at one anchor.
std::span<const Rule> rewrite_rules();

/// How often a rule was applied.
struct RuleCount {
  std::string_view name;
  std::size_t times = 0;
};
/// One application.
struct RuleApplication {
  std::string_view rule;
  std::string at;  ///< the scope of the node at the anchor, or where it has none its first result
};
struct Rewritten {
  Graph graph;
  std::vector<RuleCount> counts;  ///< of rules that were applied, in their order
};
/// For those who look for the application that changes a result.
struct RewriteTrace {
  std::int64_t limit = 0;                ///< applications after these are left out
  std::vector<RuleApplication> applied;  ///< in their order
};
/// Applies rules of a rounding class and those before it until none fits: every node is looked at once, and again when what it reads, or what reads it, has
/// changed. Takes time in proportion to the graph for rules that make it smaller.
Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, RoundingClass most = RoundingClass::strict, RewriteTrace* trace = nullptr);

}  // namespace cermet
