#include "graph/rewrite/algebra_runner.hpp"

#include <random>
#include <set>

#include "graph/rewrite/replacement.hpp"

namespace cermet {
namespace {

/// How far behind a change patterns may begin, and how many of the nodes there are looked at again.
constexpr int most_levels_behind = 8;
constexpr std::size_t most_nodes_behind = 48;

/// Operands of operands between a pattern's anchor and its farthest node.
int levels_above(const Pattern& pattern) {
  std::vector<int> level(pattern.nodes.size());
  int most = 0;
  for (std::size_t p = pattern.nodes.size(); p-- > 0;)
    for (const PatternName& operand : pattern.nodes[p].operands) {
      const int maker = operand.slot < 0 ? -1 : pattern.producers[static_cast<std::size_t>(operand.slot)];
      if (maker < 0) continue;
      level[static_cast<std::size_t>(maker)] = std::max(level[static_cast<std::size_t>(maker)], level[p] + 1);
      most = std::max(most, level[static_cast<std::size_t>(maker)]);
    }
  return most;
}

/// Applies rules of algebra where they save most. Matches in different parts of a graph do not change each other's
/// savings, so that the best of the whole graph comes first in its own part, too.
class AlgebraRunner {
 public:
  AlgebraRunner(GraphEditor& editor, std::span<const Rule> rules, const RulesByAnchor& by_anchor,
                const RewriteOptions& options, SymbolValues sizes, std::vector<std::size_t>& times)
      : editor_(editor),
        rules_(rules),
        by_anchor_(by_anchor),
        options_(options),
        sizes_(std::move(sizes)),
        times_(times),
        random_(options.order_seed) {
    for (const auto& [op, list] : by_anchor)
      for (const std::size_t r : list) levels_[op] = std::max(levels_[op], levels_above(rules[r].before));
  }

  void run() {
    for (NodeId n = editor_.first(); n != no_node; n = editor_.next(n)) look_at(n);
    while (!queue_.empty() && !(options_.trace && options_.trace->is_full())) {
      const NodeId n = queue_.begin()->second;
      const Candidate candidate = std::move(candidates_.at(n));
      queue_.erase(queue_.begin());
      candidates_.erase(n);
      if (is_unchanged(n, candidate)) apply(n, candidate);
      else look_at(n);
    }
  }

 private:
  struct Candidate {
    std::size_t rule = 0;
    Replacement replacement;
    double priority = 0;
    std::vector<NodeId> nodes;  ///< of the match
    std::size_t state = 0;      ///< of those nodes when it was found
  };

  /// A number that changes with what nodes read and who reads them.
  std::size_t state_of(const std::vector<NodeId>& nodes) const {
    std::size_t state = 0;
    const auto mix = [&](std::size_t part) { state = (state ^ part) * 0x9e3779b97f4a7c15u + (state >> 29); };
    for (const NodeId n : nodes) {
      if (!editor_.has(n)) return 0;
      for (const ValueId id : editor_.node(n).inputs) {
        if (!id) continue;
        mix(id.at());
        mix(editor_.uses(id).size());
      }
      for (const ValueId id : editor_.node(n).outputs)
        mix(2 * editor_.uses(id).size() + (editor_.is_output(id) ? 1 : 0));
    }
    return state | 1;
  }

  bool is_unchanged(NodeId n, const Candidate& candidate) {
    const GraphEditor::Focus focus(editor_, n);
    return state_of(candidate.nodes) == candidate.state;
  }

  void forget(NodeId n) {
    const auto found = candidates_.find(n);
    if (found == candidates_.end()) return;
    queue_.erase({-found->second.priority, n});
    candidates_.erase(found);
  }

  /// The best of all rules at a node, or with a seed a random one.
  void look_at(NodeId n) {
    forget(n);
    const auto rules = by_anchor_.find(editor_.node(n).op);
    if (rules == by_anchor_.end()) return;
    std::optional<Candidate> best;
    const GraphEditor::Focus focus(editor_, n);
    for (const std::size_t r : rules->second) {
      find_matches(rules_[r].before, editor_, n, [&](const Match& match) {
        auto replacement = replacement_of(rules_[r], match, options_.most, sizes_);
        if (!replacement || replacement->saved <= 0) return false;
        const double priority = options_.order_seed ? static_cast<double>(random_()) : replacement->saved;
        if (!best || priority > best->priority)
          best = Candidate{r, std::move(*replacement), priority, match.nodes, state_of(match.nodes)};
        return false;
      });
    }
    if (!best) return;
    queue_.insert({-best->priority, n});
    candidates_.emplace(n, std::move(*best));
  }

  void apply(NodeId n, const Candidate& candidate) {
    ++times_[candidate.rule];
    if (options_.trace) options_.trace->applied.push_back({rules_[candidate.rule].name, location_of(editor_, n)});
    const NodeId first_new = editor_.next_id();
    std::vector<NodeId> changed;
    const auto around = [&](ValueId id) {
      if (!id) return;
      if (const NodeId producer = editor_.producer(id); producer != no_node) changed.push_back(producer);
      const std::span<const Use> uses = editor_.uses(id);
      for (std::size_t u = 0; u < std::min(uses.size(), most_nodes_behind); ++u) changed.push_back(uses[u].node);
    };
    std::vector<ValueId> operands;  // of which something has gone: what is left of their readers may match now
    for (const NodeId dying : candidate.replacement.dying) {
      forget(dying);
      for (const ValueId id : editor_.node(dying).inputs) operands.push_back(id);
    }
    for (const auto& [from, by] : candidate.replacement.results)
      if (const auto* id = std::get_if<ValueId>(&by)) operands.push_back(*id);
    {
      const GraphEditor::Focus focus(editor_, n);
      put_in(candidate.replacement, editor_, n);
    }
    for (const ValueId id : operands) around(id);
    for (NodeId made = first_new; made < editor_.next_id(); ++made)
      if (editor_.has(made)) changed.push_back(made);
    look_behind(changed);
  }

  /// Looks again at nodes that changed and at those whose patterns may reach them.
  void look_behind(const std::vector<NodeId>& changed) {
    std::set<NodeId> seen;
    std::vector<NodeId> level, reached;
    for (const NodeId n : changed)
      if (editor_.has(n) && seen.insert(n).second) level.push_back(n);
    reached = level;
    for (int depth = 0; depth < most_levels_behind && !level.empty() && seen.size() < most_nodes_behind; ++depth) {
      std::vector<NodeId> next;
      for (const NodeId n : level)
        for (const ValueId id : editor_.node(n).outputs)
          for (const Use use : editor_.uses(id))
            if (seen.size() < most_nodes_behind && seen.insert(use.node).second) next.push_back(use.node);
      level = std::move(next);
      for (const NodeId n : level)
        if (levels_of(editor_.node(n).op) > depth) reached.push_back(n);
    }
    for (const NodeId n : reached) look_at(n);
  }

  int levels_of(OpKind op) const {
    const auto found = levels_.find(op);
    return found == levels_.end() ? 0 : found->second;
  }

  GraphEditor& editor_;
  std::span<const Rule> rules_;
  const RulesByAnchor& by_anchor_;
  const RewriteOptions& options_;
  std::unordered_map<OpKind, int> levels_;  ///< how far above its anchor the deepest pattern reaches
  SymbolValues sizes_;
  std::vector<std::size_t>& times_;
  std::mt19937 random_;
  std::unordered_map<NodeId, Candidate> candidates_;
  std::set<std::pair<double, NodeId>> queue_;  ///< best first, then in the order of the graph
};

}  // namespace

void apply_algebra(GraphEditor& editor, std::span<const Rule> rules, const RulesByAnchor& by_anchor,
                   const RewriteOptions& options, const SymbolValues& sizes, std::vector<std::size_t>& times) {
  AlgebraRunner(editor, rules, by_anchor, options, sizes, times).run();
}

}  // namespace cermet
