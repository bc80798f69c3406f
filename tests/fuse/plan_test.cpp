#include "fuse/plan.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"

namespace cermet {
namespace {

TEST(FusionPlan, CoversEveryNodeOnceInAnOrderThatRuns) {
  const Graph graph = parse_graph(R"(graph g {
    input %x : f32[T, 8]
    %a = rms_norm(%x) : f32[T, 8]
    %b = rms_norm(%a) : f32[T, 8]
    %c = rms_norm(%a) : f32[T, 8]
    output b = %b
    output c = %c
  })");
  const std::vector<FusionGroup> groups = plan_fusion(graph);
  std::vector<int> step_of(graph.nodes().size(), -1);
  for (std::size_t step = 0; step < groups.size(); ++step) {
    EXPECT_FALSE(groups[step].nodes.empty());
    for (const std::int32_t n : groups[step].nodes) {
      EXPECT_EQ(step_of.at(static_cast<std::size_t>(n)), -1) << "node " << n << " is in two groups";
      step_of[static_cast<std::size_t>(n)] = static_cast<int>(step);
    }
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    ASSERT_GE(step_of[n], 0) << "node " << n << " is in no group";
    for (const ValueId id : graph.nodes()[n].inputs)
      EXPECT_TRUE(!id || graph.value(id).producer < 0 || step_of[static_cast<std::size_t>(graph.value(id).producer)] <= step_of[n]);
  }
  EXPECT_TRUE(plan_fusion(Graph()).empty());
}

}  // namespace
}  // namespace cermet
