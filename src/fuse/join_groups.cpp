#include "fuse/join_groups.hpp"

#include <algorithm>
#include <optional>

#include "fuse/mapping.hpp"
#include "fuse/neighbours.hpp"
#include "fuse/nodes.hpp"
#include "fuse/writers.hpp"
#include "graph/memory.hpp"

namespace cermet {
namespace {

class Joiner {
 public:
  Joiner(std::vector<FusionGroup>& groups, const Graph& graph, const SymbolValues& maximum, const Target* target,
         const FusionQuestions& kernels)
      : groups_(groups),
        graph_(graph),
        maximum_(maximum),
        target_(target),
        kernels_(kernels),
        group_of_(graph.nodes().size()) {
    for (std::size_t g = 0; g < groups.size(); ++g) own(g);
  }

  /// Groups that the others read come first, so that a chain grows from its front.
  void run() {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!is_one_to_one(anchor_op(groups_[g])) && kernels_.fuses(anchor_op(groups_[g]))) extend(g);
    std::erase_if(groups_, [](const FusionGroup& group) { return group.nodes.empty(); });
  }

 private:
  struct Tools {
    GroupMaker maker;
    Writers writers;
    Tools(const Graph& graph, const SymbolValues& maximum, const Target* target)
        : maker(graph, maximum, target), writers(graph) {}
  };

  OpKind anchor_op(const FusionGroup& group) const {
    return graph_.nodes()[static_cast<std::size_t>(group.anchor())].op;
  }

  void own(std::size_t g) {
    for (const std::int32_t n : groups_[g].nodes) group_of_[static_cast<std::size_t>(n)] = g;
  }

  void extend(std::size_t g) {
    bool has_joined = false;
    for (std::size_t i = 0; i < groups_[g].operands.size(); ++i) {
      const ValueId id = groups_[g].operands[i];
      if (!id || graph_.value(id).producer < 0) continue;
      const std::size_t maker = group_of_[static_cast<std::size_t>(graph_.value(id).producer)];
      // A group of one node was tried when the other one grew.
      if ((groups_[maker].nodes.size() == 1 && !has_joined) || !may_join(groups_[maker], g)) continue;
      FusionGroup together = joined(groups_[maker], groups_[g]);
      if (!kernels_.takes(together.region)) continue;
      groups_[g] = std::move(together);
      groups_[maker].nodes.clear();
      own(g);
      has_joined = true;
      i = std::size_t(-1);  // the operands are others
    }
  }

  /// Whether a group may run where another one does, and is read there alone. The two are convex together: every path
  /// from the first one leads into the second.
  bool may_join(const FusionGroup& first, std::size_t g) {
    const FusionGroup& second = groups_[g];
    if (is_one_to_one(anchor_op(first)) || first.nodes.size() + second.nodes.size() > most_group_nodes ||
        !share_super_kernel(graph_, first.anchor(), second.anchor()))
      return false;
    for (const ValueId id : first.results) {
      if (is_output(graph_, id)) return false;
      for (const Use& use : graph_.uses(id))
        if (group_of_[static_cast<std::size_t>(use.node)] != g && !std::ranges::binary_search(first.nodes, use.node))
          return false;
    }
    if (!tools_) tools_.emplace(graph_, maximum_, target_);
    return std::ranges::none_of(first.nodes, [&](std::int32_t n) {
      const Node& node = graph_.nodes()[static_cast<std::size_t>(n)];
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (overwritten_by(node, o)) return true;
      return std::ranges::any_of(
          node.inputs, [&](ValueId id) { return id && tools_->writers.overwrite_between(id, n, second.nodes.back()); });
    });
  }

  FusionGroup joined(const FusionGroup& first, const FusionGroup& second) const {
    std::vector<std::int32_t> nodes;
    std::ranges::merge(first.nodes, second.nodes, std::back_inserter(nodes));
    return tools_->maker.group(nodes, second.anchor());
  }

  std::vector<FusionGroup>& groups_;
  const Graph& graph_;
  const SymbolValues& maximum_;
  const Target* target_;
  const FusionQuestions& kernels_;
  std::optional<Tools> tools_;         ///< made for the first pair that may be joined: most graphs have none
  std::vector<std::size_t> group_of_;  ///< by node
};

}  // namespace

void join_groups(std::vector<FusionGroup>& groups, const Graph& graph, const SymbolValues& maximum,
                 const Target* target, const FusionQuestions& kernels) {
  Joiner(groups, graph, maximum, target, kernels).run();
}

}  // namespace cermet
