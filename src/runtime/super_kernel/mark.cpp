#include "runtime/super_kernel/mark.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/super_kernel_options.hpp"

namespace cermet {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

/// "layers.3" of "layers.3.attention"; empty where no part is a number.
std::string_view layer_of(std::string_view scope) {
  for (std::size_t begin = 0; begin < scope.size();) {
    const std::size_t end = std::min(scope.find_first_of("./", begin), scope.size());
    if (is_number(scope.substr(begin, end - begin))) return scope.substr(0, end);
    begin = end + 1;
  }
  return {};
}

std::string_view name_of(const Graph& graph, const Node& node) {
  return node.outputs.empty() ? std::string_view() : graph.value(node.outputs.front()).name;
}

/// The super-kernel that a node is selected for; empty where it is not.
std::string_view super_kernel_of(const Graph& graph, const Node& node, std::string_view select) {
  const std::string_view scope = node.scope, first = name_of(graph, node);
  if (select == "decode") return select;
  if (select == "layer") return layer_of(scope.empty() ? first : scope);
  const std::size_t colon = select.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view pattern = select.substr(colon + 1);
  return fits_pattern(scope, pattern) || fits_pattern(first, pattern) ? select.substr(0, colon) : std::string_view();
}

}  // namespace

bool fits_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void check(const SuperKernelSelection& selection) {
  const std::string& select = selection.select;
  require(!select.empty() || selection.options.empty(),
          "super-kernel options: expected a super-kernel beside them, found '{}' alone", selection.options);
  SuperKernelOptions::parse(selection.options);
  if (select.empty() || select == "none" || select == "decode" || select == "layer") return;
  const std::size_t colon = select.find(':');
  require(colon != std::string::npos && colon > 0 && colon + 1 < select.size(),
          "super-kernel: expected decode, layer, none or NAME:PATTERN, found '{}'", select);
}

bool fits_any(const Graph& graph, const SuperKernelSelection& selection) {
  return std::ranges::any_of(graph.nodes(),
                             [&](const Node& node) { return !super_kernel_of(graph, node, selection.select).empty(); });
}

void mark_super_kernels(Graph& graph, const SuperKernelSelection& selection) {
  check(selection);
  if (selection.select.empty()) return;
  if (selection.select == "none") {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) graph.mark(n, Node::unmarked);
    return;
  }
  require(fits_any(graph, selection) || graph.nodes().empty(),
          "super-kernel: expected '{}' to fit a node of graph '{}', found none among {}", selection.select, graph.name,
          graph.nodes().size());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const std::string name(super_kernel_of(graph, node, selection.select));
    if (!name.empty() && node.super_kernel == Node::unmarked)
      graph.mark(n, graph.add_super_kernel(name, selection.options));
  }
}

}  // namespace cermet
