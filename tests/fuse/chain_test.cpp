// Chains of elementwise operators: grown from their ends, after products had their choice.
#include <gtest/gtest.h>

#include "fuse/plan.hpp"
#include "graph/text.hpp"

namespace cermet {
namespace {

std::vector<std::size_t> sizes_of(const std::string& nodes) {
  const Graph graph = parse_graph("graph g {\n  input %v0 : f32[4, 8]\n  constant %w : f32[8, 8]\n" + nodes + "}");
  std::vector<std::size_t> sizes;
  for (const FusionGroup& group :
       plan_fusion(graph, {}, nullptr, {[](OpKind) { return true; }, [](const Region& region) { return region.results.size() == 1; }}))
    sizes.push_back(group.nodes.size());
  return sizes;
}

std::string negations(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += fmt::format("  %v{} = neg(%v{}) : f32[4, 8]\n", i + 1, i);
  return text;
}

TEST(FusionChain, GrowsFromItsEndAsLongAsRegionsMayBe) {
  EXPECT_EQ(sizes_of(negations(0, 5) + "  output y = %v5\n"), (std::vector<std::size_t>{5}));
  EXPECT_EQ(sizes_of(negations(0, 40) + "  output y = %v40\n"), (std::vector<std::size_t>{40 - most_group_nodes, most_group_nodes}));
}

TEST(FusionChain, JoinsTheProductThatReadsItWhole) {
  EXPECT_EQ(sizes_of(negations(0, 4) + "  %v5 = linear(%v4, %w) : f32[4, 8]\n" + negations(5, 3) + "  output y = %v8\n"), (std::vector<std::size_t>{8}));
}

}  // namespace
}  // namespace cermet
