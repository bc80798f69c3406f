#include "fuse/uses.hpp"

#include <algorithm>

#include "graph/memory.hpp"

namespace cermet {

Uses::Uses(const Graph& graph) : readers_(graph.values().size()), is_result_(graph.values().size()), root_(memory_roots(graph)), writers_(root_.size()) {
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    for (const ValueId id : node.inputs)
      if (id) readers_[static_cast<std::size_t>(id.index)].push_back(static_cast<std::int32_t>(n));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (const ValueId written = overwritten_by(node, o))
        writers_[static_cast<std::size_t>(root_[static_cast<std::size_t>(written.index)])].push_back(static_cast<std::int32_t>(n));
  }
  for (const GraphOutput& output : graph.outputs()) is_result_[static_cast<std::size_t>(output.value.index)] = true;
}

bool Uses::is_overwritten_between(ValueId id, std::int32_t after, std::int32_t before) const {
  const std::vector<std::int32_t>& writers = writers_[static_cast<std::size_t>(root_[static_cast<std::size_t>(id.index)])];
  const auto first = std::ranges::upper_bound(writers, after);
  return first != writers.end() && *first < before;
}

}  // namespace cermet
