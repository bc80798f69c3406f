#include "fuse/plan.hpp"

namespace cermet {

std::vector<FusionGroup> plan_fusion(const Graph& graph) {
  std::vector<FusionGroup> groups;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) groups.push_back({{static_cast<std::int32_t>(n)}});
  return groups;
}

}  // namespace cermet
