// Which elementwise nodes join the product that they read.
#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "tests/support/group_names.hpp"

namespace cermet {
namespace {

/// Groups as "linear+add relu", for kernels that take any nodes around a product whose region has so many results.
std::string followed(const std::string& nodes, std::size_t results = 1) {
  const Graph graph = parse_graph(
      "graph g {\n  input %x : f32[T, 8]\n  input %r : f32[T, 4]\n  constant %w : f32[4, 8]\n  constant %v : f32[4, "
      "4]\n" +
      nodes + "\n}");
  SymbolValues maximum;
  maximum.set(Symbol("T"), 4);
  const auto groups = plan_fusion(graph, maximum, nullptr,
                                  {[](OpKind anchor) { return anchor == OpKind::linear; },
                                   [&](const Region& region) {
                                     EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
                                     return region.results.size() <= results &&
                                            region.problem().op->kind == OpKind::linear && region.anchor == 0;
                                   }});
  return names_of(groups, graph);
}

TEST(Follow, AChainAndItsResidual) {
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %a = relu(%y) : f32[T, 4]
    %z = add(%a, %r) : f32[T, 4]
    output z = %z)"),
            "linear+relu+add");
}

/// A norm takes the place of the sum that it reads, unless others read that, too.
TEST(Follow, TheNormBehindAResidual) {
  constexpr const char* block = R"(
    %y = linear(%x, %w) : f32[T, 4]
    %z = add(%r, %y) : f32[T, 4]
    %n = layer_norm(%z) : f32[T, 4]
    %q = linear(%n, %v) : f32[T, 4]
    %o = add(%q, {}) : f32[T, 4]
    output o = %o)";
  EXPECT_EQ(followed(fmt::format(fmt::runtime(block), "%n")), "linear+add+layer_norm linear+add");
  EXPECT_EQ(followed(fmt::format(fmt::runtime(block), "%z")), "linear+add layer_norm linear+add");
}

TEST(Follow, AValueThatTheChainReadsTwice) {
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %s = sigmoid(%y) : f32[T, 4]
    %e = erf(%s) : f32[T, 4]
    %z = mul(%y, %e) : f32[T, 4]
    output z = %z)"),
            "linear+sigmoid+erf+mul");
}

TEST(Follow, NotBeyondAResultOfTheGraphOrASecondReader) {
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %a = relu(%y) : f32[T, 4]
    %b = exp(%a) : f32[T, 4]
    output a = %a
    output b = %b)"),
            "linear+relu exp");
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %a = relu(%y) : f32[T, 4]
    %s = softmax(%y) : f32[T, 4]
    output a = %a
    output s = %s)"),
            "linear relu softmax");
}

/// Where kernels store a second value, one that is read elsewhere stays in the group.
TEST(Follow, AValueThatLeavesBesideTheLast) {
  constexpr const char* chain = R"(
    %y = linear(%x, %w) : f32[T, 4]
    %a = relu(%y) : f32[T, 4]
    %b = exp(%a) : f32[T, 4]
    %c = tanh(%b) : f32[T, 4]
    output a = %a
    output b = %b
    output c = %c)";
  EXPECT_EQ(followed(chain, 2), "linear+relu+exp tanh");
  EXPECT_EQ(followed(chain, 3), "linear+relu+exp tanh");  // no kernel for a GPU stores three
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %a = relu(%y) : f32[T, 4]
    %s = softmax(%y) : f32[T, 4]
    output a = %a
    output s = %s)",
                     2),
            "linear+relu softmax");
}

TEST(Follow, TheGroupRunsWhereItsLastNodeStood) {
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %s = softmax(%r) : f32[T, 4]
    %z = add(%y, %s) : f32[T, 4]
    output z = %z)"),
            "softmax linear+add");
  // The second product cannot run before the first, which it reads.
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %a = relu(%y) : f32[T, 4]
    %u = linear(%a, %v) : f32[T, 4]
    %z = add(%u, %a) : f32[T, 4]
    output z = %z)"),
            "linear+relu linear+add");
}

TEST(Follow, TwoProductsAreNotOneGroup) {
  EXPECT_EQ(followed(R"(
    %y = linear(%x, %w) : f32[T, 4]
    %u = linear(%r, %v) : f32[T, 4]
    %z = add(%y, %u) : f32[T, 4]
    output z = %z)"),
            "linear linear+add");
}

}  // namespace
}  // namespace cermet
