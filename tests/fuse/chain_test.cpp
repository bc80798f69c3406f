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
       plan_fusion(graph, {}, nullptr,
                   {[](OpKind) { return true; }, [](const Region& region) { return region.results.size() == 1; }}))
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
  EXPECT_EQ(sizes_of(negations(0, 40) + "  output y = %v40\n"),
            (std::vector<std::size_t>{40 - most_group_nodes, most_group_nodes}));
}

TEST(FusionChain, JoinsTheProductThatReadsItWhole) {
  EXPECT_EQ(
      sizes_of(negations(0, 4) + "  %v5 = linear(%v4, %w) : f32[4, 8]\n" + negations(5, 3) + "  output y = %v8\n"),
      (std::vector<std::size_t>{8}));
}

TEST(FusionChain, LeavesOutReshapesInFront) {
  const std::string before = "  %v1 = neg(%v0) : f32[4, 8]\n",
                    behind = "  %v4 = linear(%v3, %w) : f32[4, 8]\n  output y = %v4\n";
  const auto chain = [&](const char* second) {
    return before + "  %v2 = reshape(%v1) {shape = [2, 2, 8]} : f32[2, 2, 8]\n" + second +
           "  %v3 = reshape(%u) {shape = [4, 8]} : f32[4, 8]\n" + behind;
  };
  const std::string turned = chain("  %u = transpose(%v2) {permutation = [1, 0, 2]} : f32[2, 2, 8]\n");
  const auto takes = [](const Region& region) { return region.nodes[0].problem.op->kind != OpKind::neg; };
  const auto sizes = [&](const std::string& nodes) {
    const Graph graph = parse_graph("graph g {\n  input %v0 : f32[4, 8]\n  constant %w : f32[8, 8]\n" + nodes + "}");
    std::vector<std::size_t> list;
    for (const FusionGroup& group :
         plan_fusion(graph, {}, nullptr, {[](OpKind op) { return op == OpKind::linear; }, takes}))
      list.push_back(group.nodes.size());
    return list;
  };
  EXPECT_EQ(sizes(turned), (std::vector<std::size_t>{1, 1, 3})) << "neg, the first reshape, and the rest";
  EXPECT_EQ(sizes(chain("  %u = reshape(%v2) {shape = [2, 16]} : f32[2, 16]\n")),
            (std::vector<std::size_t>{1, 1, 1, 1, 1}));
  const std::string of_input = "  %v3 = reshape(%v0) {shape = [-1, 8]} : f32[4, 8]\n" + behind;
  EXPECT_EQ(sizes(of_input), (std::vector<std::size_t>{2})) << "the memory of an input may be strided";
}

TEST(FusionChain, TakesInANodeOnceAllOfItsReadersAreIn) {
  const std::string nodes =
      "  %a = neg(%v0) : f32[4, 8]\n  %b = relu(%a) : f32[4, 8]\n  %c = exp(%a) : f32[4, 8]\n  %d = add(%b, %c) : "
      "f32[4, 8]\n  output y = %d\n";
  EXPECT_EQ(sizes_of(nodes), (std::vector<std::size_t>{4}));
}

}  // namespace
}  // namespace cermet
