#include "fuse/writers.hpp"

#include <algorithm>

#include "graph/memory.hpp"

namespace cermet {

Writers::Writers(const Graph& graph) : root_(memory_roots(graph)), writers_(root_.size()) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (const ValueId written = overwritten_by(node, o))
        writers_[static_cast<std::size_t>(root_[static_cast<std::size_t>(written.index)])].push_back(
            static_cast<std::int32_t>(n));
  }
}

bool Writers::overwrite_between(ValueId id, std::int32_t after, std::int32_t before) const {
  const std::vector<std::int32_t>& writers =
      writers_[static_cast<std::size_t>(root_[static_cast<std::size_t>(id.index)])];
  const auto first = std::ranges::upper_bound(writers, after);
  return first != writers.end() && *first < before;
}

}  // namespace cermet
