#include <deque>
#include <map>

#include "graph/rewrite/algebra_runner.hpp"

namespace cermet {
namespace {

class Runner {
 public:
  Runner(const Graph& graph, std::span<const Rule> rules, const RewriteOptions& options)
      : editor_(graph), rules_(rules), options_(options), sizes_(typical_sizes(graph)), times_(rules.size()) {
    for (std::size_t r = 0; r < rules.size(); ++r) {
      const bool whole =
          rules[r].rule_class != RuleClass::operators && rules[r].condition.types() != Condition::Types::real;
      if (rules[r].rounding <= options.most || whole)
        (rules[r].apply ? stages_[rules[r].stage] : algebra_)[rules[r].anchor].push_back(r);
    }
    limit_ = 8 * graph.nodes().size() + 64;
  }

  Rewritten run() {
    bool changes = true;
    for (int round = 0; changes && round < most_rounds; ++round) {
      if (!algebra_.empty()) apply_algebra(editor_, rules_, algebra_, options_, sizes_, times_);
      changes = apply_stages();
    }
    Rewritten result{editor_.finish(), {}};
    for (std::size_t r = 0; r < rules_.size(); ++r)
      if (times_[r] > 0) result.counts.push_back({rules_[r].name, times_[r]});
    return result;
  }

 private:
  /// What rules of whole operators leave may be shortened by algebra, and the other way round; a few times, because
  /// they have no common measure.
  static constexpr int most_rounds = 4;

  /// Whether any rule was applied.
  bool apply_stages() {
    const NodeId first_new = editor_.next_id();
    for (const auto& [stage, by_anchor] : stages_) {
      for (NodeId n = editor_.first(); n != no_node; n = editor_.next(n)) enqueue(n);
      while (!queue_.empty()) {
        const NodeId n = queue_.front();
        queue_.pop_front();
        queued_[static_cast<std::size_t>(n)] = false;
        while (editor_.has(n) && apply_one(by_anchor, n)) continue;
      }
    }
    return editor_.next_id() != first_new;
  }

  void enqueue(NodeId n) {
    if (queued_.size() <= static_cast<std::size_t>(n)) queued_.resize(static_cast<std::size_t>(n) + 1);
    if (queued_[static_cast<std::size_t>(n)]) return;
    queued_[static_cast<std::size_t>(n)] = true;
    queue_.push_back(n);
  }

  bool apply_one(const RulesByAnchor& by_anchor, NodeId n) {
    const auto rules = by_anchor.find(editor_.node(n).op);
    if (rules == by_anchor.end() || (options_.trace && options_.trace->is_full())) return false;
    const std::string at = options_.trace ? location_of(editor_, n) : "";
    for (const std::size_t r : rules->second) {
      const NodeId first_new = editor_.next_id();
      if (!applies(rules_[r], n)) continue;
      if (++times_[r] > limit_)
        fail(Status::internal, "rule '{}': expected it to come to an end, found it applied {} times", rules_[r].name,
             times_[r]);
      if (options_.trace) options_.trace->applied.push_back({rules_[r].name, at});
      for (NodeId made = first_new; made < editor_.next_id(); ++made) enqueue_around(made);
      return true;
    }
    return false;
  }

  bool applies(const Rule& rule, NodeId n) {
    const GraphEditor::Focus focus(editor_, n);
    return rule.apply(rule, editor_, n);
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

std::string location_of(const GraphEditor& editor, NodeId n) {
  const Node& node = editor.node(n);
  return node.scope.empty() ? editor.value(node.outputs.front()).name : node.scope;
}

std::string_view name_of(RoundingClass rounding) {
  static constexpr std::string_view names[] = {"exact", "strict", "fast"};
  return names[static_cast<std::size_t>(rounding)];
}

std::string_view name_of(RuleClass rule_class) {
  static constexpr std::string_view names[] = {"operators",  "associative", "commutative", "distributive",
                                               "identities", "lattice",     "powers",      "reductions",
                                               "movement",   "products",    "raising"};
  return names[static_cast<std::size_t>(rule_class)];
}

Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, const RewriteOptions& options) {
  return Runner(graph, rules, options).run();
}
Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, RoundingClass most) {
  return rewrite(graph, rules, {.most = most});
}

}  // namespace cermet
