// The table of mapping types, cell by cell, and what it says about regions.
#include "fuse/mapping.hpp"

#include <gtest/gtest.h>

#include "fuse/group_maker.hpp"
#include "fuse/plan.hpp"
#include "graph/text.hpp"

namespace cermet {
namespace {

/// A cell as it is printed: "G Many-to-Many", "X".
std::string cell(Mapping first, Mapping second) {
  const Combination both = combine(first, second);
  if (both.verdict == Verdict::no) return "X";
  return fmt::format("{} {}", both.verdict == Verdict::fuse ? "G" : "Y", name_of(both.result));
}

std::string row(Mapping first) {
  std::string text;
  for (const Mapping second :
       {Mapping::one_to_one, Mapping::one_to_many, Mapping::many_to_many, Mapping::reorganize, Mapping::shuffle})
    text += fmt::format("{}{}", text.empty() ? "" : " | ", cell(first, second));
  return text;
}

TEST(MappingTable, IsThePrintedOne) {
  EXPECT_EQ(row(Mapping::one_to_one), "G One-to-One | G One-to-Many | G Many-to-Many | G Reorganize | G Shuffle");
  EXPECT_EQ(row(Mapping::one_to_many), "G One-to-Many | Y One-to-Many | X | Y One-to-Many | Y One-to-Many");
  EXPECT_EQ(row(Mapping::many_to_many), "G Many-to-Many | Y Many-to-Many | X | Y Many-to-Many | Y Many-to-Many");
  EXPECT_EQ(row(Mapping::reorganize), "G Reorganize | Y One-to-Many | Y Many-to-Many | G Reorganize | G Reorganize");
  EXPECT_EQ(row(Mapping::shuffle), "G Shuffle | Y One-to-Many | Y Many-to-Many | G Reorganize | G Shuffle");
}

TEST(MappingTable, ABarrierIsFusedWithNothing) {
  for (const Mapping other : {Mapping::one_to_one, Mapping::many_to_many, Mapping::barrier}) {
    EXPECT_EQ(cell(Mapping::barrier, other), "X");
    EXPECT_EQ(cell(other, Mapping::barrier), "X");
  }
}

/// All nodes of a graph as one region.
Region region_of(const std::string& nodes) {
  const Graph graph = parse_graph(
      "graph g {\n  input %x : f32[4, 8]\n  input %r : f32[8]\n  constant %g : f32[8]\n  constant %w : f32[8, 8]\n" +
      nodes + "\n}");
  const SymbolValues maximum;
  std::vector<std::int32_t> all;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) all.push_back(static_cast<std::int32_t>(n));
  return GroupMaker(graph, maximum, nullptr).group(all, 0).region;
}

std::string forbidden(const std::string& nodes) {
  const auto edge = forbidden_edge(region_of(nodes));
  return edge ? fmt::format("{} -> {}: {} after {}", edge->producer, edge->consumer, name_of(edge->second),
                            name_of(edge->first))
              : "";
}

TEST(MappingTable, LooksAtEachEdgeOfARegion) {
  EXPECT_EQ(forbidden("  %n = rms_norm(%x, %g) : f32[4, 8]\n  %y = linear(%n, %w) : f32[4, 8]\n  output y = %y"),
            "0 -> 1: Many-to-Many after Many-to-Many");
  EXPECT_EQ(forbidden("  %n = linear(%x, %w) : f32[4, 8]\n  %s = silu(%n) : f32[4, 8]\n  %y = add(%s, %x) : f32[4, "
                      "8]\n  output y = %y"),
            "");
  // The type of all that leads to an edge counts, not that of the last node.
  EXPECT_EQ(forbidden("  %n = linear(%x, %w) : f32[4, 8]\n  %s = silu(%n) : f32[4, 8]\n  %y = softmax(%s) : f32[4, "
                      "8]\n  output y = %y"),
            "1 -> 2: Many-to-Many after Many-to-Many");
}

TEST(MappingTable, DependsOnShapesAndOperands) {
  // A row that is added to every row is read by many: after it a product is an X, and after a whole tensor it is not.
  EXPECT_EQ(forbidden("  %s = silu(%r) : f32[8]\n  %a = add(%x, %s) : f32[4, 8]\n  %y = linear(%a, %w) : f32[4, 8]\n  "
                      "output y = %y"),
            "1 -> 2: Many-to-Many after One-to-Many");
  EXPECT_EQ(forbidden("  %s = silu(%x) : f32[4, 8]\n  %a = add(%x, %s) : f32[4, 8]\n  %y = linear(%a, %w) : f32[4, "
                      "8]\n  output y = %y"),
            "");
}

TEST(MappingTable, ARegionIsOfItsStrongestType) {
  EXPECT_EQ(mapping_of(region_of("  %s = silu(%x) : f32[4, 8]\n  %y = neg(%s) : f32[4, 8]\n  output y = %y")),
            Mapping::one_to_one);
  EXPECT_EQ(mapping_of(region_of("  %s = silu(%x) : f32[4, 8]\n  %y = add(%s, %r) : f32[4, 8]\n  output y = %y")),
            Mapping::one_to_many);
  EXPECT_EQ(mapping_of(region_of("  %s = silu(%x) : f32[4, 8]\n  %y = linear(%s, %w) : f32[4, 8]\n  output y = %y")),
            Mapping::many_to_many);
}

}  // namespace
}  // namespace cermet
