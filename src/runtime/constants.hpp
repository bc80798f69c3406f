// Constants of a graph as weights: loaded by name, copied from the graph, or computed of others.
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "graph/graph.hpp"
#include "runtime/weights.hpp"

namespace cermet {

/// What identifies a constant among all that a store keeps, of this graph and of others: its name where it is loaded,
/// and else what it is made of.
std::string constant_key(const Graph& graph, ValueId id);

/// Names of the constants that a constant is made of and that are loaded: its own, where it is one of them.
std::vector<std::string> loaded_names(const Graph& graph, ValueId id);

/// A loader for one constant of a graph, whatever name it is asked for. Matrices that follow each other (concat along
/// axis 0) are loaded in place; operands of other expressions are held while they are computed. Throws Error naming the
/// constant and the operand that cannot be loaded. Graph, loader, scratch (which operands are in) and pool must outlive
/// it.
LoadWeight constant_loader(const Graph& graph, ValueId id, const LoadWeight& load, Scratch& scratch, ThreadPool& pool);

}  // namespace cermet
