// Rotation and the cache's update after the product of queries, keys and values: which nodes are one group, and what
// keeps them apart.
#include <gtest/gtest.h>

#include "fuse/plan.hpp"
#include "graph/text.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::string_view product = "    %y = linear(%x, %w) : f32[1, 64]\n";
constexpr std::string_view parts = R"(
    %q, %k, %v = split(%y) {axis = -1, sizes = [32, 16, 16]} : f32[1, 32], f32[1, 16], f32[1, 16]
    %qh = reshape(%q) {shape = [0, 4, 8]} : f32[1, 4, 8]
    %kh = reshape(%k) {shape = [0, 2, 8]} : f32[1, 2, 8]
    %vh = reshape(%v) {shape = [0, 2, 8]} : f32[1, 2, 8]
)";
constexpr std::string_view rotation = R"(
    %z, %kn, %vn = rope_and_cache(%qh, %kh, %vh, %cos, %sin, %at, %kc, %vc, %at) : f32[1, 4, 8], f32[4, 2, 8, 8], f32[4, 2, 8, 8]
    output z = %z
    output k_cache = %kn
    output v_cache = %vn
)";

/// Groups in their order, as "linear+split softmax", for kernels that take whatever has a linear first.
std::string groups_of(std::string_view between, std::string_view middle, std::string_view after, bool takes = true) {
  const Graph graph =
      parse_graph(fmt::format("graph g {{\n  input %x0 : f32[1, 1, 8, 16]\n  input %x1 : f32[1, 1, 8, 16]\n  input "
                              "%cos : f32[40, 4]\n  input %sin : f32[40, "
                              "4]\n  input %at : i32[1]\n  input %kc : f32[4, 2, 8, 8]\n"
                              "  input %vc : f32[4, 2, 8, 8]\n  input %new : f32[1, 1, 16]\n  constant %w : f32[64, "
                              "128]\n  %x = reshape(%x0) {{shape = [1, "
                              "128]}} : f32[1, 128]\n{}{}{}{}{}{}}}",
                              product, between, parts, middle, rotation, after));
  const auto groups = plan_fusion(graph, SymbolValues(), nullptr,
                                  {[](OpKind anchor) { return anchor == OpKind::linear; },
                                   [&](const Region& region) {
                                     EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
                                     return takes && region.problem().op->kind == OpKind::linear && region.anchor == 0;
                                   }});
  std::string text;
  for (const FusionGroup& group : groups) {
    std::string names;
    for (const std::int32_t n : group.nodes)
      names +=
          fmt::format("{}{}", names.empty() ? "" : "+", definition(graph.nodes()[static_cast<std::size_t>(n)].op).name);
    text += fmt::format("{}{}", text.empty() ? "" : " ", names);
  }
  return text;
}

TEST(Heads, AreRotatedAndStoredBehindTheirProduct) {
  EXPECT_EQ(groups_of("", "", ""), "reshape linear+split+reshape+reshape+reshape+rope_and_cache");
  EXPECT_EQ(groups_of("", "", "", false), "reshape linear split reshape reshape reshape rope_and_cache");
}

TEST(Heads, WhatReadsTheCacheBeforeStaysBefore) {
  EXPECT_EQ(groups_of("    %old = exp(%kc) : f32[4, 2, 8, 8]\n", "    %older = exp(%vc) : f32[4, 2, 8, 8]\n",
                      "    output old = %old\n    output older = %older\n"),
            "reshape exp exp linear+split+reshape+reshape+reshape+rope_and_cache");
}

TEST(Heads, WhatReadsTheCacheAfterwardsStaysBehind) {
  EXPECT_EQ(groups_of("", "", "    %used = exp(%kn) : f32[4, 2, 8, 8]\n    output used = %used\n"),
            "reshape linear+split+reshape+reshape+reshape+rope_and_cache exp");
}

/// The product would read what another operator has overwritten by then.
TEST(Heads, StayApartWhereTheRowIsOverwrittenInBetween) {
  EXPECT_EQ(groups_of("    %xn, %xm = kv_cache_write(%new, %new, %x0, %x1, %at) : f32[1, 1, 8, 16], f32[1, 1, 8, 16]\n",
                      "", "    output xn = %xn\n"),
            "reshape linear kv_cache_write split reshape reshape reshape rope_and_cache");
}

TEST(Heads, StayApartWhereAPartHasAnotherReader) {
  const std::string apart = "reshape linear split reshape reshape reshape ";
  EXPECT_EQ(groups_of("", "    %s = softmax(%kh) : f32[1, 2, 8]\n", "    output s = %s\n"),
            apart + "softmax rope_and_cache");
  EXPECT_EQ(groups_of("", "", "    output part = %q\n"), apart + "rope_and_cache");
  EXPECT_EQ(groups_of("", "", "    output row = %y\n"), apart + "rope_and_cache");
}

}  // namespace
}  // namespace cermet
