#include <deque>
#include <map>
#include <unordered_map>

#include "graph/rewrite/rule.hpp"

namespace cermet {
namespace {

class Runner {
 public:
  Runner(const Graph& graph, std::span<const Rule> rules, RoundingClass most, RewriteTrace* trace)
      : editor_(graph), rules_(rules), times_(rules.size()), trace_(trace) {
    for (std::size_t r = 0; r < rules.size(); ++r)
      if (rules[r].rounding <= most) stages_[rules[r].stage][rules[r].anchor].push_back(r);
    limit_ = 8 * graph.nodes().size() + 64;
  }

  Rewritten run() {
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

  using ByAnchor = std::unordered_map<OpKind, std::vector<std::size_t>>;

  bool apply_one(const ByAnchor& by_anchor, NodeId n) {
    const auto rules = by_anchor.find(editor_.node(n).op);
    if (rules == by_anchor.end() || (trace_ && std::ssize(trace_->applied) >= trace_->limit)) return false;
    const std::string at = trace_ ? place_of(n) : "";
    for (const std::size_t r : rules->second) {
      const NodeId first_new = editor_.next_id();
      if (!rules_[r].apply(rules_[r], editor_, n)) continue;
      if (++times_[r] > limit_) fail(Status::internal, "rule '{}': expected it to come to an end, found it applied {} times", rules_[r].name, times_[r]);
      if (trace_) trace_->applied.push_back({rules_[r].name, at});
      for (NodeId made = first_new; made < editor_.next_id(); ++made) enqueue_around(made);
      return true;
    }
    return false;
  }

  std::string place_of(NodeId n) const {
    const Node& node = editor_.node(n);
    return node.scope.empty() ? editor_.value(node.outputs.front()).name : node.scope;
  }

  void enqueue_around(NodeId n) {
    if (!editor_.has(n)) return;
    enqueue(n);
    for (const ValueId id : editor_.node(n).outputs)
      for (const Use use : editor_.uses(id)) enqueue(use.node);
  }

  GraphEditor editor_;
  std::span<const Rule> rules_;
  std::vector<std::size_t> times_;
  std::map<int, ByAnchor> stages_;
  std::deque<NodeId> queue_;
  std::vector<bool> queued_;
  std::size_t limit_ = 0;
  RewriteTrace* trace_;
};

}  // namespace

std::string_view name_of(RoundingClass rounding) {
  static constexpr std::string_view names[] = {"exact", "strict", "fast"};
  return names[static_cast<std::size_t>(rounding)];
}

Rewritten rewrite(const Graph& graph, std::span<const Rule> rules, RoundingClass most, RewriteTrace* trace) { return Runner(graph, rules, most, trace).run(); }

}  // namespace cermet
