// Marks that a user asks for by name, on graphs that were built without.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace cermet {

/// Which nodes become super-kernels.
struct SuperKernelSelection {
  std::string select;   ///< "": as the graph is marked; none: nothing; decode: all nodes; layer: those of each layer;
                        ///< NAME:PATTERN: those that fit
  std::string options;  ///< of what is selected, as SuperKernelOptions::parse takes them
};

/// Throws Error where the selection or its options are no such text, or options stand without a selection.
void check(const SuperKernelSelection& selection);

/// Marks the nodes that the builder has neither marked nor excluded; `none` takes all marks away. A layer is what
/// shares a scope up to its first number: "layers.3" of "layers.3.attention". PATTERN has * for any characters, and is
/// compared with a node's scope and with the name of its first result. Throws Error where the selection is wrong, or a
/// pattern fits no node.
void mark_super_kernels(Graph& graph, const SuperKernelSelection& selection);

/// Whether a node fits a selection that is right.
bool fits_any(const Graph& graph, const SuperKernelSelection& selection);

/// Whether all of a text fits a pattern in which * stands for any characters.
bool fits_pattern(std::string_view text, std::string_view pattern);

}  // namespace cermet
