// Regions: their text, their cost, and what is refused.
#include "op/schema/region.hpp"

#include <gtest/gtest.h>

#include "tests/support/region.hpp"
#include "tests/support/region_builder.hpp"

namespace cermet {
namespace {

Problem product() {
  Problem problem =
      make_problem(definition(OpKind::linear),
                   {TensorType{DType::f32, {Dim::symbol("T"), 64}}, TensorType{DType::bf16, {32, 64}}}, {});
  problem.maximum.set(Symbol("T"), 4);
  problem.constant_inputs = 2;
  return problem;
}

Region chain() { return with_norm(product(), true); }

TEST(Region, ASingleOperatorReadsAsTheOperator) {
  const Region region(product());
  EXPECT_EQ(find_fault(region), std::nullopt);
  EXPECT_EQ(region.to_string(), product().to_string());
  EXPECT_EQ(region.operators(), "linear");
  EXPECT_EQ(region.operands.size(), product().inputs.size());
  EXPECT_FALSE(region.has(2)) << "no bias";
  EXPECT_EQ(region.key(), R"(linear(f32[T, 64], bf16[32, 64], -) {out_dtype = ""}, constant $1, T <= 4)");
}

TEST(Region, TextShowsWiringContractsAnchorAndResults) {
  EXPECT_EQ(
      chain().to_string(),
      R"({n0 = add_rms_norm($0: f32[T, 64], $1: f32[T, 64], $2: f32[64]) {eps = 1e-06, out_dtype = "f32", round_sum = false, weight_offset = 0.0}; )"
      R"(n1 = linear(strict n0.0, $3: bf16[32, 64], -) {out_dtype = ""}} anchor n1 -> n1, n0.1)");
  EXPECT_EQ(chain().operators(), "add_rms_norm + linear");
  const Target target{"GPU", 90, 132, 0, 0, 0};
  Region region = chain();
  region.set_target(&target);
  EXPECT_EQ(region.key(), chain().to_string() + ", constant $3, T <= 4, on sm_90a with 132 SMs");
}

TEST(Region, WhatStaysInsideMovesNoBytes) {
  const Region region = chain();
  const Cost norm = cost_of(region.nodes[0].problem), linear = cost_of(region.nodes[1].problem),
             whole = cost_of(region);
  EXPECT_EQ(whole.operations, norm.operations + linear.operations);
  EXPECT_EQ(whole.bytes, norm.bytes + linear.bytes - 2 * 4 * 64 * 4);
  Region kept = region;
  kept.results.push_back({0, 0});
  EXPECT_EQ(cost_of(kept).bytes, norm.bytes + linear.bytes - 4 * 64 * 4) << "written, but not read";
  Region shared = region;  // both summands are one operand
  shared.nodes[0].inputs[1] = RegionInput::outside(0);
  EXPECT_EQ(cost_of(shared).bytes, whole.bytes - 4 * 64 * 4);
}

TEST(Region, PartsOfAnOperandAreReadOnce) {
  RegionBuilder b;
  const RegionBuilder::Value x = b.operand({DType::f32, {10, 64}});
  const auto rows = [&](std::int64_t first, std::int64_t last) {
    return b.add(OpKind::slice, {x}, {{"axes", Ints{0}}, {"starts", Ints{first}}, {"ends", Ints{last}}});
  };
  const RegionBuilder::Value back = rows(3, 10), front = rows(0, 3);
  b.result(b.add(OpKind::concat, {back, front}));
  EXPECT_EQ(cost_of(b.build()).bytes, 2 * 10 * 64 * 4);
}

TEST(Region, OperandsKnowTheirPlaceInALaunch) {
  const Region region = chain();
  EXPECT_EQ(region.operand_of(1), 3u) << "the product's weight";
  EXPECT_EQ(region.operand_of(0), std::nullopt) << "made inside";
  EXPECT_EQ(region.operand_of(2), std::nullopt) << "not given";
  EXPECT_EQ(region.operand_of(0, 1), 1u);
}

TEST(Region, FaultsAreNamed) {
  const auto fault = [](void (*spoil)(Region&)) {
    Region region = chain();
    spoil(region);
    return find_fault(region).value_or("");
  };
  EXPECT_EQ(fault([](Region& r) { r.anchor = 2; }), "anchor: expected one of 2 nodes, found n2");
  EXPECT_EQ(fault([](Region& r) { r.anchor = -1; }), "anchor: expected one of 2 nodes, found n-1");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs[0].index = 1; }),
            "n1 (linear), operand 0: expected a node before it, found n1: a cycle");
  EXPECT_EQ(fault([](Region& r) { r.nodes[0].inputs[0] = RegionInput::inside(1, 0, Rounding::strict); }),
            "n0 (add_rms_norm), operand 0: expected a node before it, found n1: a cycle");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs[0].rounding = Rounding::unset; }),
            "n1 (linear), operand 0: expected a rounding contract, strict or fast, found none");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs[1] = {}; }),
            "n1 (linear), operand 1: expected to be wired, found nothing");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs.pop_back(); }), "n1 (linear): expected 3 wired operands, found 2");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs[1].index = 9; }),
            "n1 (linear), operand 1: expected one of 4 operands of the region, found $9");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs[1].index = 0; }),
            "n1 (linear), operand 1: expected the type of $0, found bf16[32, 64]");
  EXPECT_EQ(fault([](Region& r) { r.nodes[1].inputs[0].output = 2; }),
            "n1 (linear), operand 0: expected one of 2 results of n0, found number 2");
  EXPECT_EQ(fault([](Region& r) { r.nodes[0].problem.outputs[0].dtype = DType::bf16; }),
            "n1 (linear), operand 0: expected bf16[T, 64], found f32[T, 64]");
  EXPECT_EQ(fault([](Region& r) { r.results.clear(); }), "results: expected at least one, found none");
  EXPECT_EQ(fault([](Region& r) {
              r.results[1] = {0, 2};
            }),
            "result: expected one of 2 of n0 (add_rms_norm), found number 2");
  EXPECT_EQ(fault([](Region& r) {
              r.results = {{0, 1}};
            }),
            "n1 (linear): expected a reader of its results, found none");
  EXPECT_THROW(verify(Region()), Error);
}

}  // namespace
}  // namespace cermet
