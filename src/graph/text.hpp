// A graph as text: one line for each value or node, in order.
//
//   graph demo {
//     symbol T : 1..4096
//     super_kernel sp1 "strict-scope-check=abort"
//     input %x : bf16[T, 64]
//     constant %norm.weight : bf16[64]
//     constant %two : f32[1] = tensor f32[1] 0x00000040
//     constant %both : bf16[128] = concat(%norm.weight, %norm.weight)
//     %layers.0.norm = rms_norm(%x, %norm.weight) {eps = 1e-05} : bf16[T, 64] in sp1  // layers.0
//     output y = %layers.0.norm
//   }
//
// A constant without "=" is loaded under its name. An operand that is not given is "-"; attributes are those that were
// given; after the type come the super-kernel
// ("in sp1"; "outside" of a node that must be in none) and the scope. Names of letters, digits and _.:/- stand as they
// are, others in quotes with escape()'s escapes. Lines that are empty or start with "//" mean nothing.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace cermet {

/// The text of a graph. Parsing it gives the same graph: names, ranges, types, constants, attributes, super-kernels,
/// scopes and order.
std::string to_text(const Graph& graph);

/// The graph of a text, verified. Throws Error(invalid_argument) naming the line, or the broken rule.
Graph parse_graph(std::string_view text);
/// The same without verification, for tests of the verifier. A result that is defined twice is one value with two
/// producers.
Graph parse_unverified_graph(std::string_view text);

/// A graph as an attribute of an operator.
Subgraph make_subgraph(Graph graph);

}  // namespace cermet
