// What makes a graph valid: a table of named rules, checked when a graph arrives and after every step of compilation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace cermet {

/// One condition. `violation` returns what is wrong, naming node or value, expected and found; nothing where the rule
/// holds. A rule may rely on those before it in the table.
struct GraphRule {
  std::string_view name;
  std::string_view meaning;
  std::optional<std::string> (*violation)(const Graph&);
};

std::span<const GraphRule> graph_rules();

/// The first broken rule as "graph 'demo': rule single-producer: ..."; nothing for a valid graph.
std::optional<std::string> find_violation(const Graph& graph);
/// Throws Error(invalid_argument) with find_violation's text.
void verify(const Graph& graph);

}  // namespace cermet
