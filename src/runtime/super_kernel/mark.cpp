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

std::string_view name_of(const Graph& graph, const Node& node) { return node.outputs.empty() ? std::string_view() : graph.value(node.outputs.front()).name; }

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
  require(!select.empty() || selection.options.empty(), "super-kernel options: expected a super-kernel beside them, found '{}' alone", selection.options);
  SuperKernelOptions::parse(selection.options);
  if (select.empty() || select == "none" || select == "decode" || select == "layer") return;
  const std::size_t colon = select.find(':');
  require(colon != std::string::npos && colon > 0 && colon + 1 < select.size(), "super-kernel: expected decode, layer, none or NAME:PATTERN, found '{}'",
          select);
}

void mark_super_kernels(Graph& graph, const SuperKernelSelection& selection) {
  check(selection);
  const std::string& select = selection.select;
  if (select.empty()) return;
  if (select == "none") {
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) graph.mark(n, Node::unmarked);
    return;
  }
  const std::size_t colon = select.find(':');
  const bool by_pattern = colon != std::string::npos;
  const std::string_view pattern = by_pattern ? std::string_view(select).substr(colon + 1) : std::string_view();
  bool fits_any = false;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const std::string_view first = name_of(graph, node), layer = layer_of(node.scope.empty() ? first : std::string_view(node.scope));
    const bool fits = by_pattern ? fits_pattern(node.scope, pattern) || fits_pattern(first, pattern) : select == "decode" || !layer.empty();
    fits_any = fits_any || fits;
    if (!fits || node.super_kernel != Node::unmarked) continue;
    const std::string_view name = by_pattern ? std::string_view(select).substr(0, colon) : select == "layer" ? layer : std::string_view("decode");
    graph.mark(n, graph.add_super_kernel(name, selection.options));
  }
  require(fits_any || graph.nodes().empty(), "super-kernel: expected '{}' to fit a node of graph '{}', found none among {}", select, graph.name,
          graph.nodes().size());
}

}  // namespace cermet
