// What rules lower: a measure of a graph's work.
#pragma once

#include "graph/editor.hpp"

namespace cermet {

/// Bytes moved, a quarter for each arithmetic operation (one that takes longer counts as several), and some for every
/// node: multiples of 1/64, so that what lowers it again and again comes to an end. Equal forms have different costs:
/// where a subtraction and an addition would do, the addition costs less.
double work_of(const Problem& problem);
double work_of(const Graph& graph);
/// Values for symbols, at which rules compare costs: the greatest of their ranges, at most 1024.
SymbolValues typical_sizes(const Graph& graph);

}  // namespace cermet
