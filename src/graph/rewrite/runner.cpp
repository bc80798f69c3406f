#include <deque>
#include <map>
#include <random>
#include <set>
#include <unordered_map>

#include "graph/rewrite/cost.hpp"
#include "graph/rewrite/replacement.hpp"

namespace cermet {
namespace {

using RulesByAnchor = std::unordered_map<OpKind, std::vector<std::size_t>>;

/// How far behind a change patterns may begin, and how many of the nodes there are looked at again.
constexpr int most_levels_behind = 8;
constexpr std::size_t most_nodes_behind = 48;

/// Applies rules of algebra where they save most. Matches in different parts of a graph do not change each other's savings, so that the best of the whole graph
/// comes first in its own part, too.
class AlgebraRunner {
 public:
  AlgebraRunner(GraphEditor& editor, std::span<const Rule> rules, const RulesByAnchor& by_anchor, const RewriteOptions& options, SymbolValues sizes,
                std::vector<std::size_t>& times)
      : editor_(editor), rules_(rules), by_anchor_(by_anchor), options_(options), sizes_(std::move(sizes)), times_(times), random_(options.order_seed) {}

  void run() {
    for (NodeId n = editor_.first(); n != no_node; n = editor_.next(n)) look_at(n);
    while (!queue_.empty()) {
      const NodeId n = queue_.begin()->second;
      look_at(n);  // what was found there may have changed
      const auto found = candidates_.find(n);
      if (found == candidates_.end() || (options_.order_seed == 0 && queue_.begin()->second != n)) continue;
      const Candidate candidate = std::move(found->second);
      queue_.erase({-candidate.priority, n});
      candidates_.erase(found);
      apply(n, candidate);
    }
  }

 private:
  struct Candidate {
    std::size_t rule = 0;
    Replacement replacement;
    double priority = 0;
  };

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
    for (const std::size_t r : rules->second) {
      find_matches(rules_[r].before, editor_, n, [&](const Match& match) {
        auto replacement = replacement_of(rules_[r], match, options_.most, sizes_);
        if (!replacement || replacement->saved <= 0) return false;
        const double priority = options_.order_seed ? static_cast<double>(random_()) : replacement->saved;
        if (!best || priority > best->priority) best = Candidate{r, std::move(*replacement), priority};
        return false;
      });
    }
    if (!best) return;
    queue_.insert({-best->priority, n});
    candidates_.emplace(n, std::move(*best));
  }

  void apply(NodeId n, const Candidate& candidate) {
    ++times_[candidate.rule];
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
    put_in(candidate.replacement, editor_, n);
    for (const ValueId id : operands) around(id);
    for (NodeId made = first_new; made < editor_.next_id(); ++made)
      if (editor_.has(made)) changed.push_back(made);
    look_behind(changed);
  }

  /// Looks again at nodes that changed and at those whose patterns may reach them.
  void look_behind(const std::vector<NodeId>& changed) {
    std::set<NodeId> seen;
    std::vector<NodeId> level;
    for (const NodeId n : changed)
      if (editor_.has(n) && seen.insert(n).second) level.push_back(n);
    for (int depth = 0; depth < most_levels_behind && !level.empty() && seen.size() < most_nodes_behind; ++depth) {
      std::vector<NodeId> next;
      for (const NodeId n : level)
        for (const ValueId id : editor_.node(n).outputs)
          for (const Use use : editor_.uses(id))
            if (seen.size() < most_nodes_behind && seen.insert(use.node).second) next.push_back(use.node);
      level = std::move(next);
    }
    for (const NodeId n : seen) look_at(n);
  }

  GraphEditor& editor_;
  std::span<const Rule> rules_;
  const RulesByAnchor& by_anchor_;
  const RewriteOptions& options_;
  SymbolValues sizes_;
  std::vector<std::size_t>& times_;
  std::mt19937 random_;
  std::unordered_map<NodeId, Candidate> candidates_;
  std::set<std::pair<double, NodeId>> queue_;  ///< best first, then in the order of the graph
};

class Runner {
 public:
  Runner(const Graph& graph, std::span<const Rule> rules, const RewriteOptions& options)
      : editor_(graph), rules_(rules), options_(options), sizes_(typical_sizes(graph)), times_(rules.size()) {
    for (std::size_t r = 0; r < rules.size(); ++r) {
      const bool whole = rules[r].rule_class != RuleClass::operators && rules[r].condition.types() != Condition::Types::real;
      if (rules[r].rounding <= options.most || whole) (rules[r].apply ? stages_[rules[r].stage] : algebra_)[rules[r].anchor].push_back(r);
    }
    limit_ = 8 * graph.nodes().size() + 64;
  }

  Rewritten run() {
    if (!algebra_.empty()) AlgebraRunner(editor_, rules_, algebra_, options_, sizes_, times_).run();
    for (const auto& [stage, by_anchor] : stages_) {
      for (NodeId n = editor_.first(); n != no_node; n = editor_.next(n)) enqueue(n);
      while (!queue_.empty()) {
        const NodeId n = queue_.front();
        queue_.pop_front();
        queued_[static_cast<std::size_t>(n)] = false;
        while (editor_.has(n) && apply_one(by_anchor, n)) continue;
      }
    }
    Rewritten result{editor_.finish(), {}};
    for (std::size_t r = 0; r < rules_.size(); ++r)
      if (times_[r] > 0) result.counts.push_back({rules_[r].name, times_[r]});
    return result;
  }

 private:
  void enqueue(NodeId n) {
    if (queued_.size() <= static_cast<std::size_t>(n)) queued_.resize(static_cast<std::size_t>(n) + 1);
    if (queued_[static_cast<std::size_t>(n)]) return;
    queued_[static_cast<std::size_t>(n)] = true;
    queue_.push_back(n);
  }

  bool apply_one(const RulesByAnchor& by_anchor, NodeId n) {
    const auto rules = by_anchor.find(editor_.node(n).op);
    if (rules == by_anchor.end()) return false;
    for (const std::size_t r : rules->second) {
      const NodeId first_new = editor_.next_id();
      if (!rules_[r].apply(rules_[r], editor_, n)) continue;
      if (++times_[r] > limit_) fail(Status::internal, "rule '{}': expected it to come to an end, found it applied {} times", rules_[r].name, times_[r]);
      for (NodeId made = first_new; made < editor_.next_id(); ++made) enqueue_around(made);
      return true;
    }
    return false;
  }

  void enqueue_around(NodeId n) {
    if (!editor_.has(n)) return;
    enqueue(n);
    for (const ValueId id : editor_.node(n).outputs)
      for (const Use use : editor_.uses(id)) enqueue(use.node);
  }

  GraphEditor editor_;
  std::span<const Rule> rules_;
  RewriteOptions options_;
  SymbolValues sizes_;
  std::vector<std::size_t> times_;
  RulesByAnchor algebra_;
  std::map<int, RulesByAnchor> stages_;
  std::deque<NodeId> queue_;
  std::vector<bool> queued_;
  std::size_t limit_ = 0;
};

}  // namespace

std::string_view name_of(RoundingClass rounding) {
  static constexpr std::string_view names[] = {"exact", "strict", "fast"};
  return names[static_cast<std::size_t>(rounding)];
}

std::string_view name_of(RuleClass rule_class) {
  static constexpr std::string_view names[] = {"operators", "associative", "commutative", "distributive", "identities", "lattice",
                                               "powers",    "reductions",  "movement",    "products",     "raising"};
  return names[static_cast<std::size_t>(rule_class)];
}

Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, const RewriteOptions& options) { return Runner(graph, rules, options).run(); }
Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, RoundingClass most) { return rewrite(graph, rules, {.most = most}); }

}  // namespace cermet
