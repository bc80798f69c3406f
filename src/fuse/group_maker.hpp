// A group of given nodes: its region, wired, with operands and results.
#pragma once

#include <vector>

#include "fuse/plan.hpp"

namespace cermet {

/// The graph must outlive it.
class GroupMaker {
 public:
  GroupMaker(const Graph& graph, const SymbolValues& maximum, const Target* target);
  FusionGroup single(std::int32_t node) const;
  /// The group of these nodes, rising, with the anchor among them; every contract is strict.
  FusionGroup group(const std::vector<std::int32_t>& nodes, std::int32_t anchor) const;
  /// By value: of the graph.
  const std::vector<bool>& is_result() const { return is_result_; }

 private:
  const Node& node(std::int32_t n) const { return graph_.nodes()[static_cast<std::size_t>(n)]; }
  RegionInput wire(FusionGroup& group, ValueId id, std::size_t at, std::size_t i) const;
  void leave(FusionGroup& group, std::size_t at) const;

  const Graph& graph_;
  std::vector<Problem> problems_;  ///< by node
  std::vector<bool> is_result_;
};

}  // namespace cermet
