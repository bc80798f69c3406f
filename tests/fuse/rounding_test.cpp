// How values between the nodes of a group are rounded.
#include <gtest/gtest.h>

#include "fuse/plan.hpp"
#include "graph/text.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::string_view text = R"(graph g {
  input %x : bf16[4, 8]
  input %y : f32[4, 8]
  constant %w : bf16[4, 8]
  constant %v : f32[4, 8]
  %a = linear(%x, %w) : bf16[4, 4]
  %b = relu(%a) : bf16[4, 4]
  %c = linear(%y, %v) : f32[4, 4]
  %d = relu(%c) : f32[4, 4]
  output b = %b
  output d = %d
})";

/// The contracts of the inner edges of every group: "strict fast".
std::string contracts(Rounding rounding, bool takes_fast) {
  const Graph graph = parse_graph(std::string(text));
  const auto edges = [](const Region& region, std::string& names) {
    for (const RegionNode& node : region.nodes)
      for (const RegionInput& input : node.inputs)
        if (input.rounding != Rounding::unset)
          names += fmt::format("{}{}", names.empty() ? "" : " ", name_of(input.rounding));
  };
  const auto groups = plan_fusion(graph, {}, nullptr,
                                  {[](OpKind anchor) { return anchor == OpKind::linear; },
                                   [&](const Region& region) {
                                     EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
                                     std::string names;
                                     edges(region, names);
                                     return takes_fast || names.find("fast") == std::string::npos;
                                   }},
                                  rounding);
  EXPECT_EQ(groups.size(), 2U);
  std::string names;
  for (const FusionGroup& group : groups) edges(group.region, names);
  return names;
}

TEST(FusionRounding, FastLeavesOnlyNarrowValuesUnrounded) {
  EXPECT_EQ(contracts(Rounding::strict, true), "strict strict");
  EXPECT_EQ(contracts(Rounding::fast, true), "fast strict");
}

TEST(FusionRounding, AGroupThatIsOnlyTakenStrictlyIsStrict) {
  EXPECT_EQ(contracts(Rounding::fast, false), "strict strict");
}

}  // namespace
}  // namespace cermet
