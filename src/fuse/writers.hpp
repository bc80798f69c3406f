// Which nodes of a graph overwrite the memory of each value, found once.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

class Writers {
 public:
  explicit Writers(const Graph& graph);

  /// Whether a node in (after, before) overwrites the memory in which the value may be.
  bool overwrite_between(ValueId id, std::int32_t after, std::int32_t before) const;

 private:
  std::vector<std::int32_t> root_;
  std::vector<std::vector<std::int32_t>> writers_;  ///< by root, rising
};

}  // namespace cermet
