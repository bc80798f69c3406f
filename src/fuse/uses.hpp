// Who reads and who overwrites each value of a graph, found once.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

class Uses {
 public:
  explicit Uses(const Graph& graph);

  /// Nodes that read a value, in the graph's order; one that reads it twice is there twice.
  const std::vector<std::int32_t>& readers(ValueId id) const { return readers_[static_cast<std::size_t>(id.index)]; }
  bool is_result(ValueId id) const { return is_result_[static_cast<std::size_t>(id.index)]; }
  /// Whether a node in (after, before) overwrites the memory in which the value may be.
  bool is_overwritten_between(ValueId id, std::int32_t after, std::int32_t before) const;

 private:
  std::vector<std::vector<std::int32_t>> readers_;
  std::vector<bool> is_result_;
  std::vector<std::int32_t> root_;
  std::vector<std::vector<std::int32_t>> writers_;  ///< by root, rising
};

}  // namespace cermet
