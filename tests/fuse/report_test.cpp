// Every reason why two groups are not one, each of a graph that has it; and which groups a mode makes.
#include "fuse/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fuse/group_maker.hpp"
#include "graph/rewrite/rule.hpp"
#include "graph/text.hpp"
#include "op/schema/operator.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

Graph reported_graph(const std::string& nodes) {
  return parse_graph(
      "graph g {\n  input %x : f32[4, 8]\n  input %r : f32[4, 8]\n  constant %g : f32[8]\n  constant %w : f32[8, 8]\n" +
      nodes + "\n}");
}

/// Whether kernels of a region's anchor take other operators: products do, and elementwise operators among themselves.
bool joins(OpKind anchor) {
  return anchor == OpKind::linear || anchor == OpKind::silu || anchor == OpKind::neg || anchor == OpKind::add;
}

bool has_softmax(const Region& region) {
  return std::ranges::any_of(region.nodes,
                             [](const RegionNode& node) { return node.problem.op->kind == OpKind::softmax; });
}

struct Planned {
  Graph graph;
  std::vector<FusionGroup> groups;
  FusionReport report;
};

Planned plan(const std::string& nodes, FusionMode mode = FusionMode::full, bool accept = true,
             std::vector<std::int32_t> views = {}, bool say_accepted = false) {
  Planned planned{reported_graph(nodes), {}, {}};
  const SymbolValues maximum;
  const auto fuses = [&](OpKind anchor) { return mode != FusionMode::none && joins(anchor); };
  const auto takes = [&](const Region& region) {
    return accept && why_apart(mode, region).empty() && region.results.size() == 1 && !has_softmax(region) &&
           joins(region.problem().op->kind);
  };
  planned.groups = plan_fusion(planned.graph, maximum, nullptr, {fuses, takes});
  std::erase_if(planned.groups, [&](const FusionGroup& group) {
    return group.nodes.size() == 1 && std::ranges::binary_search(views, group.nodes[0]);
  });
  const auto declines = [&](const Region& region) {
    return say_accepted || takes(region)
               ? std::string()
               : fmt::format("kernel: {} results of {}", region.results.size(), region.operators());
  };
  planned.report = explain_fusion(planned.graph, maximum, planned.groups, {mode, nullptr, views, declines});
  return planned;
}

/// "silu+neg linear"
std::string groups_of(const Planned& planned) {
  std::string text;
  for (const FusionGroup& group : planned.groups) {
    std::string names;
    for (const std::int32_t n : group.nodes)
      names += fmt::format("{}{}", names.empty() ? "" : "+",
                           definition(planned.graph.nodes()[static_cast<std::size_t>(n)].op).name);
    text += fmt::format("{}{}", text.empty() ? "" : " ", names);
  }
  return text;
}

/// A line for each edge: "%n kernels: ..."
std::string edges_of(const Planned& planned) {
  std::string text;
  for (const UnfusedEdge& edge : planned.report.edges)
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "\n", planned.graph.value(edge.value).name,
                        name_of(edge.why), edge.text);
  return text;
}

const std::string norm_and_product =
    "  %n = rms_norm(%x, %g) : f32[4, 8]\n  %y = linear(%n, %w) : f32[4, 8]\n  output y = %y";
const std::string chain = "  %a = silu(%x) : f32[4, 8]\n  %y = neg(%a) : f32[4, 8]\n  output y = %y";

TEST(FusionReport, SaysNothingWithinAGroup) {
  const Planned planned = plan(chain);
  EXPECT_EQ(groups_of(planned), "silu+neg");
  EXPECT_EQ(edges_of(planned), "");
}

TEST(FusionReport, NamesEachKernelsDecline) {
  EXPECT_EQ(edges_of(plan(chain, FusionMode::full, false)), "a kernels: kernel: 1 results of silu + neg");
}

TEST(FusionReport, NamesTheMode) {
  EXPECT_EQ(edges_of(plan(chain, FusionMode::none)), "a mode: mode none joins nothing");
  EXPECT_EQ(edges_of(plan(chain, FusionMode::pattern)), "a mode: no pattern is a chain of elementwise operators");
  EXPECT_EQ(edges_of(plan("  %a = silu(%x) : f32[4, 8]\n  %y = linear(%a, %w) : f32[4, 8]\n  output y = %y",
                          FusionMode::pattern)),
            "a mode: no pattern computes operands on their way to a product");
}

TEST(FusionReport, NamesTheCellOfTheTable) {
  EXPECT_EQ(edges_of(plan(norm_and_product, FusionMode::published)), "n table: Many-to-Many after Many-to-Many");
  EXPECT_EQ(groups_of(plan(norm_and_product, FusionMode::full)), "rms_norm+linear");
}

TEST(FusionReport, CountsOtherReaders) {
  const std::string text =
      edges_of(plan("  %a = silu(%x) : f32[4, 8]\n  %y = neg(%a) : f32[4, 8]\n  %z = softmax(%a) : f32[4, 8]\n  %u = "
                    "softmax(%a) : f32[4, 8]\n"
                    "  output y = %y\n  output z = %z\n  output u = %u"));
  EXPECT_NE(text.find("a readers: read by 2 other operators; kernel: 2 results of silu + neg"), std::string::npos)
      << text;
}

TEST(FusionReport, SaysThatAValueIsAResult) {
  EXPECT_EQ(edges_of(plan("  %a = silu(%x) : f32[4, 8]\n  %y = neg(%a) : f32[4, 8]\n  output y = %y\n  output a = %a")),
            "a result: a result of the graph; kernel: 2 results of silu + neg");
}

TEST(FusionReport, NamesWhatRunsInBetween) {
  const std::string text =
      edges_of(plan("  %a = linear(%x, %w) : f32[4, 8]\n  %s = softmax(%a) : f32[4, 8]\n  %y = add(%a, %s) : f32[4, "
                    "8]\n  output y = %y"));
  EXPECT_NE(text.find("a cycle: softmax runs in between: it reads the one and is read by the other"), std::string::npos)
      << text;
}

TEST(FusionReport, SaysThatAViewIsNoLaunch) {
  EXPECT_EQ(
      edges_of(plan("  %a = silu(%x) : f32[4, 8]\n  %y = reshape(%a) {shape = [8, 4]} : f32[8, 4]\n  output y = %y",
                    FusionMode::full, true, {1})),
      "a view: shares its operand's memory, so that nothing is launched");
}

TEST(FusionReport, SaysThatGroupsAreFull) {
  std::string nodes = "  %v0 = neg(%x) : f32[4, 8]\n";
  for (int i = 1; i < 40; ++i) nodes += fmt::format("  %v{} = neg(%v{}) : f32[4, 8]\n", i, i - 1);
  Planned planned{reported_graph(nodes + "  output y = %v39"), {}, {}};
  const SymbolValues maximum;
  const GroupMaker maker(planned.graph, maximum, nullptr);
  std::vector<std::int32_t> all(40);
  std::ranges::generate(all, [n = 0]() mutable { return n++; });
  planned.groups = {maker.group({all.begin(), all.begin() + 25}, 24), maker.group({all.begin() + 25, all.end()}, 39)};
  planned.report = explain_fusion(planned.graph, maximum, planned.groups,
                                  {FusionMode::full, nullptr, {}, [](const Region&) { return std::string(); }});
  EXPECT_EQ(edges_of(planned), "v24 limit: 40 operators together, at most 32");
}

TEST(FusionReport, SaysThatMemoryIsOverwritten) {
  const Planned planned = [] {
    Planned made{parse_graph(R"(graph g {
  input %cache : f32[8, 2, 16, 16]
  input %other : f32[8, 2, 16, 16]
  input %k : f32[4, 2, 16]
  input %slots : i32[4]
  %a = neg(%cache) : f32[8, 2, 16, 16]
  %new, %also = kv_cache_write(%k, %k, %cache, %other, %slots) : f32[8, 2, 16, 16], f32[8, 2, 16, 16]
  %y = silu(%a) : f32[8, 2, 16, 16]
  output y = %y
  output n = %new
  output o = %also
})"),
                 {},
                 {}};
    const SymbolValues maximum;
    made.groups = plan_fusion(made.graph, maximum, nullptr);
    made.report =
        explain_fusion(made.graph, maximum, made.groups,
                       {FusionMode::full, nullptr, {}, [](const Region&) { return std::string("kernel: no"); }});
    return made;
  }();
  EXPECT_EQ(edges_of(planned), "a overwritten: memory is overwritten in between");
}

TEST(FusionReport, SaysThatTheOrderDecided) {
  EXPECT_EQ(edges_of(plan(chain, FusionMode::full, false, {}, true)),
            "a order: a kernel takes both, but one of them had joined others before");
}

TEST(FusionReport, EveryReasonHasItsOwnName) {
  std::vector<std::string_view> names;
  for (int why = 0; why <= static_cast<int>(WhyApart::order); ++why)
    names.push_back(name_of(static_cast<WhyApart>(why)));
  EXPECT_EQ(names, (std::vector<std::string_view>{"view", "mode", "border", "limit", "overwritten", "cycle", "table",
                                                  "result", "readers", "kernels", "order"}));
}

TEST(FusionReport, SuperKernelsHaveBorders) {
  const auto planned = [](const std::string& first, const std::string& second) {
    return plan("  super_kernel sp1\n  %m = linear(%x, %w) : f32[4, 8]" + first + "\n  %y = silu(%m) : f32[4, 8]" +
                second + "\n  output y = %y");
  };
  EXPECT_EQ(groups_of(planned(" in sp1", " in sp1")), "linear+silu");
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {" in sp1", ""}, {"", " in sp1"}, {" in sp1", " outside"}, {"", " outside"}}) {
    EXPECT_EQ(groups_of(planned(first, second)), "linear silu") << first << " / " << second;
    EXPECT_EQ(edges_of(planned(first, second)), "m border: in different super-kernels");
  }
}

TEST(FusionMode, EachMakesItsGroups) {
  const std::string nodes =
      "  %p = silu(%x) : f32[4, 8]\n  %n = rms_norm(%p, %g) : f32[4, 8]\n  %m = linear(%n, %w) : f32[4, 8]\n  %b = "
      "add(%m, %r) : f32[4, 8]\n"
      "  %s = silu(%b) : f32[4, 8]\n  %y = add(%s, %x) : f32[4, 8]\n  output y = %y";
  EXPECT_EQ(groups_of(plan(nodes, FusionMode::none)), "silu rms_norm linear add silu add");
  EXPECT_EQ(groups_of(plan(nodes, FusionMode::pattern)), "silu rms_norm linear+add+silu+add");
  EXPECT_EQ(groups_of(plan(nodes, FusionMode::published)), "silu rms_norm linear+add+silu+add");
  EXPECT_EQ(groups_of(plan(nodes, FusionMode::full)), "silu+rms_norm+linear+add+silu+add");
}

TEST(FusionMode, PatternsEndBehindThreeOperators) {
  const std::string product =
      "  %m = linear(%x, %w) : f32[4, 8]\n  %b = add(%m, %r) : f32[4, 8]\n  %s = silu(%b) : f32[4, 8]\n";
  EXPECT_EQ(groups_of(plan(product + "  %c = add(%s, %x) : f32[4, 8]\n  %y = neg(%c) : f32[4, 8]\n  output y = %y",
                           FusionMode::pattern)),
            "linear+add+silu+add neg");
  EXPECT_EQ(groups_of(plan(product + "  %y = mul(%s, %x) : f32[4, 8]\n  output y = %y", FusionMode::pattern)),
            "linear+add+silu mul");
}

TEST(FusionMode, ChoosesAmongRules) {
  const auto names = [](FusionMode mode) {
    std::vector<std::string_view> list;
    for (const Rule& rule : rewrite_rules())
      if (applies(mode, rule)) list.push_back(rule.name);
    return list;
  };
  const auto has = [&](FusionMode mode, std::string_view name) { return std::ranges::count(names(mode), name) == 1; };
  EXPECT_TRUE(names(FusionMode::none).empty());
  EXPECT_EQ(names(FusionMode::full).size(), rewrite_rules().size());
  for (const FusionMode mode : {FusionMode::pattern, FusionMode::published}) {
    EXPECT_TRUE(has(mode, "linear-bias"));
    EXPECT_FALSE(has(mode, "stack-linears")) << "is no fixed pattern";
  }
  EXPECT_TRUE(has(FusionMode::pattern, "dual-linear"));
  EXPECT_FALSE(has(FusionMode::published, "dual-linear")) << "has two products";
  EXPECT_FALSE(has(FusionMode::published, "norm-dynamic-quant"));
  EXPECT_TRUE(has(FusionMode::published, "transposes-around-reshape"));
  EXPECT_FALSE(has(FusionMode::pattern, "transposes-around-reshape"));
}

TEST(FusionMode, IsFoundByName) {
  for (const FusionModeInfo& info : fusion_modes()) {
    EXPECT_EQ(fusion_mode_named("--mode", info.name), info.mode);
    EXPECT_EQ(name_of(info.mode), info.name);
  }
  EXPECT_EQ(error_text([] { fusion_mode_named("--mode", "all"); }),
            "--mode: expected one of none, pattern, published, full, found \"all\"");
}

}  // namespace
}  // namespace cermet
