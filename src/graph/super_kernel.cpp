// Marks of nodes that become one launch.
#include <algorithm>

#include "graph/graph.hpp"
#include "graph/super_kernel_options.hpp"

namespace cermet {

std::int32_t Graph::add_super_kernel(std::string_view super_kernel, std::string_view options) try {
  require(!super_kernel.empty(), "expected a name, found an empty one");
  const auto known = std::ranges::find(super_kernels_, super_kernel, &SuperKernel::name);
  SuperKernelOptions::parse(options);
  if (known == super_kernels_.end()) {
    super_kernels_.push_back({std::string(super_kernel), std::string(options)});
    return static_cast<std::int32_t>(super_kernels_.size()) - 1;
  }
  const bool same = options.empty() || SuperKernelOptions::parse(options) == SuperKernelOptions::parse(known->options);
  require(same, "expected its options, '{}', or none, found '{}'", known->options, options);
  return static_cast<std::int32_t>(known - super_kernels_.begin());
} catch (const Error& error) {
  throw Error(error.status(), fmt::format("graph '{}': super-kernel '{}': {}", name, super_kernel, error.what()));
}

void Graph::mark(std::size_t node, std::int32_t super_kernel) {
  CERMET_ASSERT(node < nodes_.size() && super_kernel >= Node::excluded &&
                super_kernel < static_cast<std::int32_t>(super_kernels_.size()));
  nodes_[node].super_kernel = super_kernel;
}

Graph::SuperKernelScope::SuperKernelScope(Graph& graph, std::int32_t super_kernel)
    : graph_(graph), previous_(graph.super_kernel_) {
  CERMET_ASSERT(super_kernel >= Node::excluded &&
                super_kernel < static_cast<std::int32_t>(graph.super_kernels_.size()));
  graph.super_kernel_ = super_kernel;
}
Graph::SuperKernelScope::~SuperKernelScope() { graph_.super_kernel_ = previous_; }

Graph::SuperKernelScope Graph::super_kernel(std::string_view super_kernel, std::string_view options) {
  if (!super_kernel.empty()) return {*this, add_super_kernel(super_kernel, options)};
  require(options.empty(),
          "graph '{}': super-kernel without a name: expected no options, because its nodes are in none, found '{}'",
          name, options);
  return {*this, Node::excluded};
}

}  // namespace cermet
