// Which norms join the product that reads them, and that groups remain a plan that can run.
#include "fuse/plan.hpp"
#include "op/schema/operator.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"

namespace cermet {
namespace {

Graph graph_of(const std::string& nodes) {
  return parse_graph(
      "graph g {\n  input %x : f32[T, 8]\n  input %r : f32[T, 8]\n  constant %g : f32[8]\n  constant %w : f32[4, 8]\n  "
      "constant %v : f32[4, 8]\n" +
      nodes + "\n}");
}

std::vector<FusionGroup> planned(const Graph& graph, bool accept = true) {
  SymbolValues maximum;
  maximum.set(Symbol("T"), 4);
  return plan_fusion(graph, maximum, nullptr,
                     {[](OpKind anchor) { return anchor == OpKind::linear || anchor == OpKind::dual_linear; },
                      [&](const Region& region) {
                        EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
                        const OpKind first = region.nodes.front().problem.op->kind;
                        return accept && region.nodes.size() == 2 && region.results.front() == RegionPlace{1, 0} &&
                               std::ranges::none_of(region.results,
                                                    [](RegionPlace place) {
                                                      return place == RegionPlace{0, 0};
                                                    }) &&
                               (first == OpKind::rms_norm || first == OpKind::add_rms_norm);
                      }});
}

/// The operators of every group, "+" within one; checks that the groups are a plan.
std::string groups_of(const Graph& graph, bool accept = true) {
  const std::vector<FusionGroup> groups = planned(graph, accept);
  std::vector<int> step_of(graph.nodes().size(), -1);
  std::string text;
  for (std::size_t step = 0; step < groups.size(); ++step) {
    EXPECT_FALSE(groups[step].nodes.empty());
    std::string group;
    for (const std::int32_t n : groups[step].nodes) {
      EXPECT_EQ(step_of.at(static_cast<std::size_t>(n)), -1) << "node " << n << " is in two groups";
      step_of[static_cast<std::size_t>(n)] = static_cast<int>(step);
      group +=
          fmt::format("{}{}", group.empty() ? "" : "+", definition(graph.nodes()[static_cast<std::size_t>(n)].op).name);
    }
    text += fmt::format("{}{}", text.empty() ? "" : " ", group);
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    EXPECT_GE(step_of[n], 0) << "node " << n << " is in no group";
    for (const ValueId id : graph.nodes()[n].inputs)
      EXPECT_TRUE(!id || graph.value(id).producer < 0 ||
                  step_of[static_cast<std::size_t>(graph.value(id).producer)] <= step_of[n])
          << "node " << n;
  }
  return text;
}

TEST(Fusion, ANormalizationThatOneProductReadsJoinsIt) {
  const Graph graph = graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    output y = %y)");
  EXPECT_EQ(groups_of(graph), "rms_norm+linear");
  EXPECT_EQ(groups_of(graph, false), "rms_norm linear") << "no kernel takes both";
  EXPECT_TRUE(planned(Graph()).empty());
}

TEST(Fusion, WhatRunsBetweenStaysWhereItIs) {
  EXPECT_EQ(groups_of(graph_of(R"(
    %n = rms_norm(%x, %g) : f32[T, 8]
    %m = rms_norm(%r, %g) : f32[T, 8]
    %y = dual_linear(%n, %w, %v) {activation = "silu"} : f32[T, 4]
    output y = %y
    output m = %m)")),
            "rms_norm rms_norm+dual_linear");
}

TEST(Fusion, AResultThatSomebodyElseReadsIsNotHidden) {
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

TEST(Fusion, TheSumOfAnAddRmsNormMayBeReadOnlyAfterTheProduct) {
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

TEST(Fusion, OnlyANormalizationIsComputedOnTheWay) {
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

TEST(Fusion, AGroupKnowsWhereItsOperandsAndResultsAreInTheGraph) {
  const Graph graph = graph_of(R"(
    %n, %s = add_rms_norm(%x, %r, %g) : f32[T, 8], f32[T, 8]
    %y = linear(%n, %w) : f32[T, 4]
    output y = %y
    output s = %s)");
  const std::vector<FusionGroup> groups = planned(graph);
  ASSERT_EQ(groups.size(), 1u);
  const auto names = [&](const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) text += (id ? graph.value(id).name : "-") + " ";
    return text;
  };
  EXPECT_EQ(names(groups[0].operands), "x r g w ");
  EXPECT_EQ(names(groups[0].results), "y s ");
  EXPECT_EQ(groups[0].anchor(), 1);
  EXPECT_TRUE(groups[0].region.is_constant(3));
  EXPECT_FALSE(groups[0].region.is_constant(0));
}

/// A node that joins runs later: what it reads must still be there.
TEST(Fusion, AnOperandThatIsOverwrittenInBetweenKeepsItsReaderInPlace) {
  const auto groups_where_norm_reads = [](const char* operand) {
    return groups_of(parse_graph(fmt::format(R"(graph g {{
      input %a : f32[8, 2, 16, 16]
      input %b : f32[8, 2, 16, 16]
      input %other : f32[8, 2, 16, 16]
      input %k : f32[T, 2, 16]
      input %slots : i32[T]
      constant %g : f32[16]
      constant %w : f32[4, 16]
      %n = rms_norm(%{}, %g) : f32[8, 2, 16, 16]
      %c, %d = kv_cache_write(%k, %k, %a, %b, %slots) : f32[8, 2, 16, 16], f32[8, 2, 16, 16]
      %y = linear(%n, %w) : f32[8, 2, 16, 4]
      output y = %y
      output c = %c
      output d = %d
    }})",
                                             operand)));
  };
  EXPECT_EQ(groups_where_norm_reads("a"), "rms_norm kv_cache_write linear");
  EXPECT_EQ(groups_where_norm_reads("other"), "kv_cache_write rms_norm+linear");
}

/// Twice the nodes ask twice the questions, whatever is read from far away.
TEST(Fusion, PlanningAsksInProportionToTheGraph) {
  const auto questions = [](int count) {
    Graph graph;
    const ValueId g = graph.add_constant("g", {DType::f32, {8}}), w = graph.add_constant("w", {DType::f32, {8, 8}});
    ValueId x = graph.add_input("x", {DType::f32, {2, 8}});
    const ValueId first = x;
    for (int i = 0; i < count; ++i)
      x = graph.apply(OpKind::add, {graph.apply(OpKind::linear, {graph.apply(OpKind::rms_norm, {x, g}), w}), first});
    graph.add_output("y", x);
    int asked = 0;
    const auto groups = plan_fusion(graph, {}, nullptr,
                                    {[](OpKind anchor) { return anchor == OpKind::linear; },
                                     [&](const Region& region) {
                                       ++asked;
                                       return region.nodes.size() == 2;
                                     }});
    EXPECT_EQ(groups.size(), static_cast<std::size_t>(2 * count));
    return asked;
  };
  EXPECT_EQ(questions(300) - questions(200), questions(200) - questions(100));
  EXPECT_LE(questions(100), 300);
}

/// Groups where kernels take a sum before a normalization, and both before a product.
std::string absorbed(const std::string& nodes) {
  const Graph graph = graph_of(nodes);
  SymbolValues maximum;
  maximum.set(Symbol("T"), 4);
  const auto groups =
      plan_fusion(graph, maximum, nullptr,
                  {[](OpKind anchor) { return anchor == OpKind::linear || anchor == OpKind::rms_norm; },
                   [](const Region& region) {
                     EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
                     const bool sums = region.nodes[0].problem.op->kind == OpKind::add &&
                                       region.nodes[1].problem.op->kind == OpKind::rms_norm;
                     return sums && region.nodes.size() == (region.problem().op->kind == OpKind::linear ? 3 : 2);
                   }});
  std::string text;
  for (const FusionGroup& group : groups)
    text += fmt::format("{}{}", text.empty() ? "" : "; ", group.region.operators());
  return text;
}

TEST(Fusion, AProductTakesInANormWithWhatTheNormHasTakenIn) {
  EXPECT_EQ(absorbed("    %s = add(%x, %r) : f32[T, 8]\n    %n = rms_norm(%s, %g) : f32[T, 8]\n    %y = linear(%n, %w) "
                     ": f32[T, 4]\n    output y = %y"),
            "add + rms_norm + linear");
}

TEST(Fusion, ANormThatIsReadBeforeTheProductStays) {
  EXPECT_EQ(
      absorbed(
          "    %s = add(%x, %r) : f32[T, 8]\n    %n = rms_norm(%s, %g) : f32[T, 8]\n    %a = relu(%n) : f32[T, 8]\n"
          "    %y = linear(%n, %w) : f32[T, 4]\n    output y = %y\n    output a = %a"),
      "add + rms_norm; relu; linear");
  EXPECT_EQ(
      absorbed(
          "    %s = add(%x, %r) : f32[T, 8]\n    %n = rms_norm(%s, %g) : f32[T, 8]\n    %a = relu(%s) : f32[T, 8]\n"
          "    %y = linear(%n, %w) : f32[T, 4]\n    output y = %y\n    output a = %a"),
      "add + rms_norm; relu; linear");
}

}  // namespace
}  // namespace cermet
