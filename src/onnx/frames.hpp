// What branches, functions and loops have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onnx/importer.hpp"

namespace cermet::onnx {

inline const GraphDef& graph_attribute(const Node& node, const char* name) {
  const auto found = node.attributes.find(name);
  const auto* graph =
      found == node.attributes.end() ? nullptr : std::get_if<std::shared_ptr<const GraphDef>>(&found->second);
  if (!graph)
    fail(Status::invalid_file, "node '{}' ({}): attribute {}: expected a graph, found none", node.name, node.op, name);
  return **graph;
}

template <class... Args>
void expect(const Node& node, bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition)
    fail(Status::invalid_file, "node '{}' ({}): {}", node.name, node.op,
         fmt::format(format, std::forward<Args>(args)...));
}

inline std::vector<std::string> names_of(const std::vector<ValueInfo>& values) {
  std::vector<std::string> names;
  for (const ValueInfo& value : values) names.push_back(value.name);
  return names;
}

}  // namespace cermet::onnx
