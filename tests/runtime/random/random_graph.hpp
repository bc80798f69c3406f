// Graphs of operators drawn at random: chains with residuals and shared operands, of every mapping type, in several
// element types, with symbolic and empty dimensions. The same seed gives the same graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace cermet::test {

struct RandomGraph {
  Graph graph;
  std::vector<std::int64_t> sizes;  ///< values of T to run with; one where the graph has no symbol
  bool is_continuous =
      true;  ///< small errors stay small: nothing is rounded to integers, and no floating-point numbers are compared

  SymbolValues maximum() const;
};
RandomGraph random_graph(std::uint64_t seed);

/// Greatest value of T.
inline constexpr std::int64_t most_tokens = 6;

}  // namespace cermet::test
