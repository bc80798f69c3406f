// Which groups run with the one that reads them.
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "tests/support/group_names.hpp"

namespace cermet {
namespace {

/// Groups as "mean+linear+silu+linear", for kernels that take any nodes before and after a product, `most` of them
/// products, and store `results` at most.
std::string joined(const std::string& nodes, std::int64_t most = 9, std::size_t results = 1) {
  const Graph graph = parse_graph(
      "graph g {\n  input %x : f32[3, 5, 8]\n  input %r : f32[3, 8]\n  constant %w : f32[8, 8]\n  constant %v : f32[8, "
      "8]\n  constant %g : f32[8]\n" +
      nodes + "\n}");
  const auto is_linear = [](const RegionNode& node) { return node.problem.op->kind == OpKind::linear; };
  const auto groups =
      plan_fusion(graph, {}, nullptr,
                  {[](OpKind anchor) { return anchor == OpKind::linear; },
                   [&](const Region& region) {
                     EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
                     const auto products = std::ranges::count_if(region.nodes, is_linear);
                     const bool mean = std::ranges::any_of(
                         region.nodes, [](const RegionNode& n) { return n.problem.op->kind == OpKind::reduce_mean; });
                     return region.results.size() <= results && products <= most && (!mean || products > 1);
                   }});
  return names_of(groups, graph);
}

constexpr const char* squeeze = R"(
    %m = reduce_mean(%x) {axes = [1], keepdims = false} : f32[3, 8]
    %a = linear(%m, %w) : f32[3, 8]
    %b = silu(%a) : f32[3, 8]
    %c = linear(%b, %v) : f32[3, 8]
    %d = sigmoid(%c) : f32[3, 8]
)";

TEST(Join, ProductsAndTheMeanBeforeThem) {
  EXPECT_EQ(joined(fmt::format("{}    output d = %d", squeeze)), "reduce_mean+linear+silu+linear+sigmoid");
  EXPECT_EQ(joined(fmt::format("{}    output d = %d", squeeze), 1), "reduce_mean linear+silu linear+sigmoid");
}

TEST(Join, NotWhatOthersRead) {
  EXPECT_EQ(joined(fmt::format("{}    output b = %b\n    output d = %d", squeeze)),
            "reduce_mean linear+silu linear+sigmoid");
  EXPECT_EQ(
      joined(fmt::format("{}    %e = layer_norm(%b, %g) : f32[3, 8]\n    output d = %d\n    output e = %e", squeeze)),
      "reduce_mean linear+silu linear+sigmoid layer_norm");
}

/// What the first group also stores for its own nodes stays inside: the maximum of a logsumexp, which is added again
/// after the sum.
TEST(Join, WhatBothRead) {
  const auto groups = [](std::size_t results) {
    return joined(R"(
    %a = linear(%r, %w) : f32[3, 8]
    %b = silu(%a) : f32[3, 8]
    %c = linear(%b, %v) : f32[3, 8]
    %d = add(%c, %a) : f32[3, 8]
    output d = %d)",
                  9, results);
  };
  EXPECT_EQ(groups(2), "linear+silu+linear+add");
  EXPECT_EQ(groups(1), "linear silu+linear+add");
}

/// The first product stands before a norm that the second one does not read: it runs where the second one does.
TEST(Join, AGroupThatRunsLater) {
  EXPECT_EQ(joined(R"(
    %a = linear(%r, %w) : f32[3, 8]
    %b = silu(%a) : f32[3, 8]
    %n = layer_norm(%r, %g) : f32[3, 8]
    %s = softmax(%n) : f32[3, 8]
    %c = linear(%b, %v) : f32[3, 8]
    output s = %s
    output c = %c)"),
            "layer_norm softmax linear+silu+linear");
}

/// Products in a row, as many as kernels take.
TEST(Join, Chains) {
  const auto chain = [](int count) {
    std::string nodes;
    for (int i = 0; i < count; ++i)
      nodes += fmt::format("    %a{0} = linear({1}, %w) : f32[3, 8]\n    %b{0} = silu(%a{0}) : f32[3, 8]\n", i,
                           i == 0 ? "%r" : fmt::format("%b{}", i - 1));
    return fmt::format("{}    output y = %b{}", nodes, count - 1);
  };
  EXPECT_EQ(joined(chain(3)), "linear+silu+linear+silu+linear+silu");
  EXPECT_EQ(joined(chain(4), 2), "linear+silu+linear+silu linear+silu+linear+silu");
}

/// A group that joins runs later: what it reads must still be there.
TEST(Join, NotAcrossAWriteOfWhatItReads) {
  const auto reading = [](const char* operand) {
    return joined(fmt::format(R"(
    input %a : f32[8, 2, 16, 8]
    input %b : f32[8, 2, 16, 8]
    input %other : f32[8, 2, 16, 8]
    input %k : f32[3, 2, 8]
    input %slots : i32[3]
    %l = linear(%{}, %w) : f32[8, 2, 16, 8]
    %s = silu(%l) : f32[8, 2, 16, 8]
    %c, %d = kv_cache_write(%k, %k, %a, %b, %slots) : f32[8, 2, 16, 8], f32[8, 2, 16, 8]
    %y = linear(%s, %v) : f32[8, 2, 16, 8]
    output y = %y
    output c = %c
    output d = %d)",
                              operand));
  };
  EXPECT_EQ(reading("a"), "linear+silu kv_cache_write linear");
  EXPECT_EQ(reading("other"), "kv_cache_write linear+silu+linear");
}

}  // namespace
}  // namespace cermet
