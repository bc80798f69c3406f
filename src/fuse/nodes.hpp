// What passes that put several nodes in the place of one ask about them.
#pragma once

#include "graph/graph.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// A graph in which some nodes stand for `count` others.
struct SplitNodes {
  Graph graph;
  std::size_t count = 0;
};

/// Those of the attributes that the operator knows.
Attributes known_attributes(const Attributes& attributes, OpKind op);

/// A node's problem with symbols at their maximum, on a target (null: the CPU).
Problem problem_of(const Graph& graph, const Node& node, const SymbolValues& maximum, const Target* target);
/// The same of an operator that is not in the graph.
Problem problem_of(OpKind op, std::span<const TensorType> inputs, const Attributes& attributes,
                   const SymbolValues& maximum, const Target* target);

/// Whether a value leaves the graph: an output has it, or an input's memory in the end.
bool is_output(const Graph& graph, ValueId value);

}  // namespace cermet
