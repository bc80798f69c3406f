// Which norms join the product that reads them, and that groups remain a plan that can run.
#include "fuse/prologue.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"

namespace cermet {
namespace {

Graph graph_of(const std::string& nodes) {
  return parse_graph(
      "graph g {\n  input %x : f32[T, 8]\n  input %r : f32[T, 8]\n  constant %g : f32[8]\n  constant %w : f32[4, 8]\n  constant %v : f32[4, 8]\n" + nodes +
      "\n}");
}

/// The operators of every group, "+" within one; checks that the groups are a plan.
std::string groups_of(const Graph& graph, bool accept = true) {
  const std::vector<FusionGroup> groups = fuse_prologues(graph, plan_fusion(graph), [&](const Node&, const Node&) { return accept; });
  std::vector<int> step_of(graph.nodes().size(), -1);
  std::string text;
  for (std::size_t step = 0; step < groups.size(); ++step) {
    EXPECT_FALSE(groups[step].nodes.empty());
    std::string group;
    for (const std::int32_t n : groups[step].nodes) {
      EXPECT_EQ(step_of.at(static_cast<std::size_t>(n)), -1) << "node " << n << " is in two groups";
      step_of[static_cast<std::size_t>(n)] = static_cast<int>(step);
      group += fmt::format("{}{}", group.empty() ? "" : "+", definition(graph.nodes()[static_cast<std::size_t>(n)].op).name);
    }
    text += fmt::format("{}{}", text.empty() ? "" : " ", group);
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    EXPECT_GE(step_of[n], 0) << "node " << n << " is in no group";
    for (const ValueId id : graph.nodes()[n].inputs)
      EXPECT_TRUE(!id || graph.value(id).producer < 0 || step_of[static_cast<std::size_t>(graph.value(id).producer)] <= step_of[n]) << "node " << n;
  }
  return text;
}

TEST(Prologue, ANormalisationThatOneProductReadsJoinsIt) {
  const Graph graph = graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    output y = %y)");
  EXPECT_EQ(groups_of(graph), "rms_norm+linear");
  EXPECT_EQ(groups_of(graph, false), "rms_norm linear") << "no kernel takes both";
  EXPECT_TRUE(fuse_prologues(Graph(), plan_fusion(Graph()), [](const Node&, const Node&) { return true; }).empty());
}

TEST(Prologue, WhatRunsBetweenStaysWhereItIs) {
  EXPECT_EQ(groups_of(graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %m = rms_norm(%r, %g) : f32[T, 8]
    %y = dual_linear(%n, %w, %v) {activation = "silu"} : f32[T, 4]
    output y = %y
    output m = %m)")),
            "rms_norm rms_norm+dual_linear");
}

TEST(Prologue, AResultThatSomebodyElseReadsIsNotHidden) {
  EXPECT_EQ(groups_of(graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    %z = linear(%n, %v) : f32[T, 4]
    output y = %y
    output z = %z)")),
            "rms_norm linear linear");
  EXPECT_EQ(groups_of(graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    output y = %y
    output n = %n)")),
            "rms_norm linear");
}

TEST(Prologue, TheSumOfAnAddRmsNormMayBeReadOnlyAfterTheProduct) {
  EXPECT_EQ(groups_of(graph_of(R"(
    %n, %s = add_rms_norm(%x, %r, %g) : f32[T, 8], f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    %z = linear(%s, %v) : f32[T, 4]
    output y = %y
    output z = %z)")),
            "add_rms_norm+linear linear");
  EXPECT_EQ(groups_of(graph_of(R"(
    %n, %s = add_rms_norm(%x, %r, %g) : f32[T, 8], f32[T, 8]
    %z = linear(%s, %v) : f32[T, 4]
    %y = linear(%n, %w) : f32[T, 4]
    output y = %y
    output z = %z)")),
            "add_rms_norm linear linear");
}

TEST(Prologue, OnlyANormalisationIsComputedOnTheWay) {
  EXPECT_EQ(groups_of(graph_of(R"(
    %n = silu(%x) : f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    output y = %y)")),
            "silu linear");
  EXPECT_EQ(groups_of(graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %y = add(%n, %r) : f32[T, 8]
    output y = %y)")),
            "rms_norm add");
}

}  // namespace
}  // namespace cermet
