// Rewrite rules as rows: what is looked for, what takes its place, when, and what that does to the rounding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/editor.hpp"
#include "graph/rewrite/condition.hpp"
#include "graph/rewrite/pattern.hpp"

namespace cermet {

/// What a rule does to results. Choosing a class includes the classes before it.
enum class RoundingClass : std::uint8_t {
  exact,   ///< every result keeps its bits, infinities and NaN included (which NaN it is may change)
  strict,  ///< the same formula: nothing is rounded to a type other than before, but float32 steps in between may be
           ///< done in another order, or not stored. NaN, infinities and signed zeros of operands, and steps that
           ///< overflow, give what they gave; what operators leave open stays open: which zero max, min, relu and clip
           ///< take, a sum of one element -0, and the steps of an activation or a normalization made of its formula
  fast,    ///< another formula with the same value in exact arithmetic, or a value in between that was rounded to a
         ///< narrower type is not any more. Errors stay within a few times what they were; what infinities and NaN give
         ///< may change
};
std::string_view name_of(RoundingClass rounding);

/// Where a rule of algebra comes from: a file below rules/.
enum class RuleClass : std::uint8_t {
  operators,
  associative,
  commutative,
  distributive,
  identities,
  lattice,
  powers,
  reductions,
  movement,
  products,
  raising
};
std::string_view name_of(RuleClass rule_class);

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
  Pattern after = {};  ///< results of the names of those that they replace; other results of `before` must have no
                       ///< reader left, or keep their node
  bool (*fits)(const Match&) = nullptr;
  Attributes (*attributes)(const Match&) = nullptr;  ///< of nodes of `after` that have none in the text
  // Of a row of algebra, of which the one that saves most work is applied first:
  RuleClass rule_class = RuleClass::operators;
  std::string_view when = {};  ///< the side condition, for readers
  Condition condition = {};
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
  bool is_full() const { return std::ssize(applied) >= limit; }
};
/// RuleApplication::at of a node.
std::string location_of(const GraphEditor& editor, NodeId n);
struct RewriteOptions {
  RoundingClass most = RoundingClass::strict;
  std::uint32_t order_seed =
      0;  ///< tests: other than 0, rules of algebra are applied in a random order instead of best first
  RewriteTrace* trace = nullptr;
};
/// Applies rules of a rounding class and those before it until none fits: every node is looked at once, and again when
/// what it reads, or what reads it, has changed. Rules of algebra come first, each application where it saves most
/// work_of(), and only where it saves any, which is why they come to an end. Takes time in proportion to the graph for
/// rules that make it smaller.
Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, const RewriteOptions& options);
Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, RoundingClass most = RoundingClass::strict);

}  // namespace cermet
