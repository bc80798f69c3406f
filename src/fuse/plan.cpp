#include "fuse/plan.hpp"

#include <algorithm>

#include "fuse/contracts.hpp"
#include "fuse/group_maker.hpp"
#include "fuse/join_groups.hpp"
#include "fuse/mapping.hpp"
#include "fuse/neighbours.hpp"
#include "fuse/product_ends.hpp"
#include "fuse/writers.hpp"
#include "graph/memory.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::size_t most_nodes = most_group_nodes;
/// Readers that a product tries to take in: the longest activation that exporters write out has eight operators.
constexpr int most_followers = 16;
/// Answers of no kernels.
constexpr auto no_anchor = [](OpKind) { return false; };
constexpr auto no_region = [](const Region&) { return false; };

class Planner {
 public:
  Planner(const Graph& graph, const SymbolValues& maximum, const Target* target, const FusionQuestions& kernels,
          Rounding rounding)
      : graph_(graph),
        maximum_(maximum),
        kernels_(kernels),
        rounding_(rounding),
        made_(graph, maximum, target),
        writers_(graph),
        joined_(graph.nodes().size()),
        owner_(graph.nodes().size(), -1),
        absorbed_(graph.nodes().size()) {}

  std::vector<FusionGroup> run() {
    std::vector<FusionGroup> groups;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n)
      groups.push_back(made_.single(static_cast<std::int32_t>(n)));
    // Products and reductions first, so that they find what comes before and after them still alone; then chains of
    // elementwise operators, and of those that only move elements, from their ends.
    for (FusionGroup& group : groups)
      if (!is_chained(group.anchor())) extend(group, groups);
    for (auto group = groups.rbegin(); group != groups.rend(); ++group)
      if (is_chained(group->anchor())) extend(*group, groups);
    std::erase_if(groups, [&](const FusionGroup& group) {
      return absorbed_[static_cast<std::size_t>(group.anchor())] ||
             (group.nodes.size() == 1 && joined_[static_cast<std::size_t>(group.nodes[0])]);
    });
    std::ranges::stable_sort(groups, {}, [](const FusionGroup& group) { return group.nodes.back(); });
    return groups;
  }

 private:
  const Node& node(std::int32_t n) const { return graph_.nodes()[static_cast<std::size_t>(n)]; }

  void extend(FusionGroup& group, const std::vector<FusionGroup>& singles) {
    if (joined_[static_cast<std::size_t>(group.anchor())] || !kernels_.fuses(node(group.anchor()).op)) return;
    grow(group, singles);
    follow(group);
    for (const std::int32_t n : group.nodes) owner_[static_cast<std::size_t>(n)] = group.anchor();
  }

  /// Takes in what makes the group's operands, one node after the other, as long as a kernel takes the whole.
  void grow(FusionGroup& group, const std::vector<FusionGroup>& singles) {
    std::vector<std::int32_t> tried;
    std::vector<std::int32_t> waiting = makers_of(graph_, group.anchor());
    while (!waiting.empty() && group.nodes.size() < most_nodes) {
      const std::int32_t maker = waiting.back();
      waiting.pop_back();
      if (std::ranges::find(tried, maker) != tried.end()) continue;
      if (joined_[static_cast<std::size_t>(maker)]) {
        absorb(maker, group, singles);
        continue;
      }
      if (!may_join(maker, group)) continue;  // it is asked again when another of its readers has joined
      tried.push_back(maker);
      std::vector<std::int32_t> nodes = group.nodes;
      nodes.insert(std::ranges::upper_bound(nodes, maker), maker);
      FusionGroup larger = made_.group(nodes, group.anchor());
      if (!taken(larger.region)) continue;
      group = std::move(larger);
      joined_[static_cast<std::size_t>(maker)] = joined_[static_cast<std::size_t>(group.anchor())] = true;
      std::ranges::copy(makers_of(graph_, maker), std::back_inserter(waiting));
    }
    release_views(group);
  }

  /// Takes in the whole group that ends in its anchor, this node: a norm with what comes before it, in front of the
  /// product that reads it.
  void absorb(std::int32_t maker, FusionGroup& group, const std::vector<FusionGroup>& singles) {
    const std::int32_t anchor = owner_[static_cast<std::size_t>(maker)];
    if (anchor != maker || is_chained(group.anchor())) return;
    const std::vector<std::int32_t>& others = singles[static_cast<std::size_t>(anchor)].nodes;
    std::vector<std::int32_t> nodes;
    std::ranges::set_union(group.nodes, others, std::back_inserter(nodes));
    if (nodes.size() > most_nodes || others.back() > group.anchor()) return;
    for (const std::int32_t n : others)
      if (!may_run_at(n, group.anchor(), nodes)) return;
    FusionGroup larger = made_.group(nodes, group.anchor());
    if (!taken(larger.region)) return;
    group = std::move(larger);
    for (const std::int32_t n : group.nodes) joined_[static_cast<std::size_t>(n)] = true;
    absorbed_[static_cast<std::size_t>(anchor)] = true;
  }

  /// Leaves out reshapes with which a group begins: in front of it they share memory and cost nothing.
  void release_views(FusionGroup& group) {
    while (release_view(group)) {
    }
  }

  /// One of them; what the next one reads may have left with it.
  bool release_view(FusionGroup& group) {
    for (std::size_t at = 0; at < group.nodes.size(); ++at) {
      const std::int32_t view = group.nodes[at];
      if (view == group.anchor() || !shares_memory(graph_, view, group.nodes)) continue;
      std::vector<std::int32_t> nodes = group.nodes;
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(at));
      FusionGroup smaller = nodes.size() == 1 ? made_.single(nodes[0]) : made_.group(nodes, group.anchor());
      if (nodes.size() > 1 && !taken(smaller.region)) continue;
      group = std::move(smaller);
      joined_[static_cast<std::size_t>(view)] = false;
      joined_[static_cast<std::size_t>(group.anchor())] = nodes.size() > 1;
      return true;
    }
    return false;
  }

  /// Takes in nodes that read the result of a product and may follow it. Readers join in their order, so that none is
  /// left between the region's nodes; while a value still has readers outside beside those that joined, the next ones
  /// may bring them in.
  void follow(FusionGroup& group) {
    if (is_chained(group.anchor())) return;
    std::vector<std::int32_t> nodes = group.nodes;
    FusionGroup best = group;
    for (int tries = 0; tries < most_followers; ++tries) {
      const std::int32_t reader = first_reader(graph_, nodes);
      if (reader < 0 || nodes.size() == most_nodes || joined_[static_cast<std::size_t>(reader)] ||
          !may_follow(reader, group.anchor()) || !may_move(nodes, reader) || is_left_to_reader(reader, group.anchor()))
        break;
      nodes.insert(std::ranges::upper_bound(nodes, reader), reader);
      FusionGroup larger = made_.group(nodes, group.anchor());
      if (is_ended(larger.region) && taken(larger.region)) best = std::move(larger);
    }
    if (best.nodes.size() == group.nodes.size()) return;
    group = std::move(best);
    for (const std::int32_t n : group.nodes) joined_[static_cast<std::size_t>(n)] = true;
  }

  /// Whether a node makes more elements than the product gives (a gate that is applied to an image), and the only one
  /// that reads them computes them on the way: then nothing stores them.
  bool is_left_to_reader(std::int32_t n, std::int32_t anchor) const {
    const auto elements = [&](std::int32_t of) { return graph_.type(node(of).outputs[0]).elements().value(maximum_); };
    const std::span<const Use> uses = graph_.uses(node(n).outputs[0]);
    if (uses.size() != 1 || made_.is_result()[static_cast<std::size_t>(node(n).outputs[0].index)] ||
        elements(n) <= elements(anchor))
      return false;
    const std::int32_t reader = uses[0].node;
    if (is_chained(reader) || joined_[static_cast<std::size_t>(reader)] || !kernels_.fuses(node(reader).op))
      return false;
    FusionGroup later = made_.group({n, reader}, reader);
    return taken(later.region);
  }

  /// Operators of one place each, and those that end some products, with the parts of its columns that they read;
  /// channels that are moved after their normalization.
  bool may_follow(std::int32_t n, std::int32_t anchor) const {
    if (!share_super_kernel(graph_, n, anchor)) return false;
    const OpKind op = node(n).op, before = node(anchor).op;
    if (before == OpKind::group_norm || before == OpKind::instance_norm)
      return is_one_to_one(op) || op == OpKind::transpose;
    return is_one_to_one(op) || end_of(op) != nullptr || leads_to_end(graph_, n, made_.is_result());
  }

  /// Whether a kernel takes the region, if need be with strict contracts, which it then has.
  bool taken(Region& region) const {
    if (rounding_ == Rounding::fast) {
      if (relax(region) && kernels_.takes(region)) return true;
      tighten(region);
    }
    return kernels_.takes(region);
  }

  /// Whether what these nodes read and write stays as it is until node `to`.
  bool may_move(const std::vector<std::int32_t>& nodes, std::int32_t to) const {
    for (const std::int32_t n : nodes) {
      for (std::size_t o = 0; o < node(n).outputs.size(); ++o)
        if (overwritten_by(node(n), o)) return false;
      for (const ValueId id : node(n).inputs)
        if (id && writers_.overwrite_between(id, n, to)) return false;
    }
    return true;
  }

  bool is_chained(std::int32_t n) const { return is_one_to_one(node(n).op) || node(n).op == OpKind::transpose; }

  /// Whether a node may run where the group's anchor is: nothing reads its results before that and outside, and its
  /// operands are still there. The region then stays convex: a path from the node to the anchor through the outside
  /// would have such a reader.
  bool may_join(std::int32_t n, const FusionGroup& group) const {
    return !joined_[static_cast<std::size_t>(n)] && may_run_at(n, group.anchor(), group.nodes);
  }
  bool may_run_at(std::int32_t n, std::int32_t anchor, const std::vector<std::int32_t>& group) const {
    if (!share_super_kernel(graph_, n, anchor)) return false;
    for (std::size_t o = 0; o < node(n).outputs.size(); ++o) {
      if (overwritten_by(node(n), o)) return false;
      for (const Use& use : graph_.uses(node(n).outputs[o]))
        if (use.node < anchor && !std::ranges::binary_search(group, use.node)) return false;
    }
    return std::ranges::none_of(node(n).inputs,
                                [&](ValueId id) { return id && writers_.overwrite_between(id, n, anchor); });
  }

  const Graph& graph_;
  const SymbolValues& maximum_;
  const FusionQuestions& kernels_;
  Rounding rounding_;
  GroupMaker made_;
  Writers writers_;
  std::vector<bool> joined_;         ///< by node: in a group of several
  std::vector<std::int32_t> owner_;  ///< by node: the anchor of the group that it was last in
  std::vector<bool> absorbed_;       ///< by anchor: its group is in another
};

}  // namespace

std::vector<FusionGroup> plan_fusion(const Graph& graph, const SymbolValues& maximum, const Target* target,
                                     const FusionQuestions& kernels, Rounding rounding) {
  std::vector<FusionGroup> groups = Planner(graph, maximum, target, kernels, rounding).run();
  join_groups(groups, graph, maximum, target, kernels);
  return groups;
}

std::vector<FusionGroup> plan_fusion(const Graph& graph, const SymbolValues& maximum, const Target* target) {
  return plan_fusion(graph, maximum, target, {no_anchor, no_region});
}

}  // namespace cermet
