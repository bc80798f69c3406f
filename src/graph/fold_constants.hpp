// Computes before the first run what depends on constants alone.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

struct FoldedConstants {
  Graph graph;
  std::size_t nodes = 0;          ///< that became constants
  std::vector<std::string> left;  ///< "'mask' would take 4.0 GiB": results of constants that every run computes
};

/// Nodes whose operands are all constants become constant expressions. Results of few elements, of operands whose
/// elements the graph holds, become data, which rules read, and equal data is one constant. An elementwise operator
/// reads the one element of a constant that is the same everywhere, which broadcasts. Left alone are results that take
/// more than 16 MiB and more than four times what they are computed of, operators that communicate or update memory in
/// place, and what would be computed again and again within one expression.
FoldedConstants fold_constants(const Graph& graph);

}  // namespace cermet
