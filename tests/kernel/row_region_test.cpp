// Regions along rows on the CPU: a few passes over each row give what the operators give one after another.
#include <gtest/gtest.h>

#include "kernel/row_program.hpp"
#include "tests/kernel/type.hpp"
#include "tests/support/region_run.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

/// Scales of quantized values are such that most stay in range.
std::vector<Fill> fills_of(const Region& region) {
  std::vector<Fill> fills;
  for (const RegionPlace& place : region.operands)
    fills.push_back(region.nodes[static_cast<std::size_t>(place.node)].problem.op->kind == OpKind::quantize &&
                            place.index == 1
                        ? uniform(0.02, 0.04)
                        : normal());
  return fills;
}

/// A value that is rounded the other way to 16 bits changes the scale of its row, which is float32.
double scale_of(const Region& region) {
  const bool narrow = std::ranges::any_of(
      region.nodes, [](const RegionNode& node) { return size_of(node.problem.input(0).dtype) == 2; });
  return narrow && row_program(region).program.quantization ? 16384 : 4;
}

TEST(RowRegion, TakesWhatAGpuTakes) {
  for (const auto& [name, region] : row_regions(nullptr)) {
    SCOPED_TRACE(name);
    expect_region_conforms(region, fills_of(region), 1, scale_of(region));
  }
}

TEST(RowRegion, QuantizesByTokenAndByGroup) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [granularity, group] : {std::pair{"token", 128}, {"group", 128}, {"group", 33}, {"group", 700}})
      for (const bool asymmetric : {false, true}) {
        RegionBuilder b(Rounding::strict);
        const Value y = b.add(OpKind::rms_norm, {b.operand(type(dtype, {5, 1300})), b.operand(type(dtype, {1300}))});
        const Value q = b.add(OpKind::dynamic_quant, {b.add(OpKind::silu, {y}), b.operand(type(DType::f32, {1300}))},
                              {{"granularity", granularity}, {"group_size", group}, {"asymmetric", asymmetric}});
        for (int r = 0; r < (asymmetric ? 3 : 2); ++r) b.result(b.result_of(q.node, r));
        b.result(y);
        const Region region = b.build();
        expect_region_conforms(region, {normal(), normal(), uniform(0.5, 2)}, 1, asymmetric ? 1e6 : scale_of(region));
      }
}

TEST(RowRegion, ReductionsLeave) {
  for (const Dims& dims : {Dims{7, 900}, Dims{3, 5, 8}, Dims{2, 1}}) {
    RegionBuilder b(Rounding::strict);
    const Attributes last{{"axes", Ints{-1}}, {"keepdims", true}};
    const Value x = b.operand(type(DType::f32, dims)),
                scaled = b.add(OpKind::mul, {x, b.operand(type(DType::f32, dims))});
    const Value largest = b.add(OpKind::reduce_max, {scaled}, last), total = b.add(OpKind::reduce_sum, {scaled}, last);
    const Value middle = b.add(OpKind::add, {largest, b.add(OpKind::abs, {total})});
    b.result(b.add(OpKind::sub, {scaled, middle}));
    b.result(middle);
    b.anchor(total);
    expect_region_conforms(b.build(), {normal(), normal()}, 1, 64);
  }
}

TEST(RowRegion, LongerThanWhatIsKept) {
  for (const std::int64_t length : {32768, 32769, 70000}) {
    RegionBuilder b(Rounding::strict);
    const Value e = b.add(OpKind::softmax, {b.add(OpKind::tanh, {b.operand(type(DType::f32, {2, length}))})});
    b.result(b.add(OpKind::mul, {e, b.operand(type(DType::f32, {}))}));
    b.anchor(e);
    expect_region_conforms(b.build(), {normal(), constant(1000)}, 1);
  }
}

TEST(RowRegion, NothingToDo) {
  for (const Dims& dims : {Dims{0, 64}, Dims{3, 0}}) {
    RegionBuilder b(Rounding::strict);
    const Value q = b.add(OpKind::dynamic_quant, {b.add(OpKind::relu, {b.operand(type(DType::f32, dims))})});
    b.result(q);
    b.result(b.result_of(q.node, 1));
    expect_region_conforms(b.build(), {normal()}, 1);
  }
}

TEST(RowRegion, DeclinesSayWhy) {
  RegionBuilder b(Rounding::strict);
  const Attributes last{{"axes", Ints{-1}}, {"keepdims", true}};
  Value x = b.operand(type(DType::f32, {4, 64}));
  for (int i = 0; i < 4; ++i) x = b.add(OpKind::sub, {x, b.add(OpKind::reduce_max, {x}, last)});
  b.result(x);
  Region region = b.build();
  region.anchor = 0;
  const Kernel* kernel = cpu::kernels_of(OpKind::reduce_max).front();
  EXPECT_EQ(kernel->declines(region).value_or("none"), "reduces its rows 4 times, at most 3 in one launch");
}

}  // namespace
}  // namespace cermet
