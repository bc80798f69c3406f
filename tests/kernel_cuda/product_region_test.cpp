// What fills the hole after a product, in every family: which take it and launch their own programs needs no GPU.
#include "select/select.hpp"
#include "tests/kernel_cuda/region_case.hpp"
#include "tests/support/product_regions.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

class ProductRegions : public testing::TestWithParam<ProductRegion> {};

TEST_P(ProductRegions, AreTakenByEveryFamily) {
  const auto device = make_null_device(90);
  expect_taken(GetParam().region(device->target()), GetParam().kernels);
}

TEST_P(ProductRegions, GiveWhatTheOperatorsGive) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const Region region = GetParam().region(gpu.device->target());
  const std::vector<OwnedTensor> operands = make_operands(region, GetParam().fills);
  const std::vector<OwnedTensor> expected = run_references(region, views_of(operands));
  int taken = 0;
  for (const Kernel* kernel : enabled_kernels_of(region.problem().op->kind)) {
    if (decline_of(*kernel, region)) continue;
    ++taken;
    for (const std::int64_t padding : {0, 3, 16}) {
      const std::vector<DeviceResult> results = run_region(region, views_of(operands), *kernel, padding, gpu);
      for (std::size_t r = 0; r < results.size(); ++r) {
        EXPECT_LE(largest_error(results[r].view, expected[r].view, 4), 1)
            << kernel->name << ", result " << r << ", rows " << padding << " elements apart";
        EXPECT_TRUE(results[r].padding_untouched())
            << kernel->name << ", result " << r << ", rows " << padding << " elements apart";
      }
    }
  }
  EXPECT_GT(taken, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, ProductRegions, testing::ValuesIn(product_regions()),
                         [](const auto& test) { return test.param.name; });

/// Another product would take it, and be slower than Hopper's and a launch for the rest.
TEST(ProductRegionChoice, ASecondResultOfManyRowsIsApart) {
  for (const int capability : {80, 90}) {
    const auto device = make_null_device(capability);
    Region region =
        parse_region("{n0 = linear($0: bf16[512, 64], $1: bf16[64, 64]); n1 = relu(strict n0)} anchor n0 -> n0, n1");
    region.set_target(device->target());
    for (const Kernel* kernel : cuda::kernels_of(OpKind::linear)) {
      const Decline reason = decline_of(*kernel, region);
      const bool is_hopper = kernel->name == "gemm.linear.hopper" && capability == 90;
      EXPECT_TRUE(!is_hopper ||
                  reason == "two results of more than 64 rows: the second in a launch of its own was faster")
          << reason.value_or("takes it");
      EXPECT_EQ(!reason,
                capability == 80 && (kernel->name == "gemm.linear.tensor" || kernel->name == "gemm.linear.general"))
          << kernel->name;
    }
  }
}

/// Regions that were measured to be slower are formed on request only.
TEST(ProductRegionChoice, PlannersFormWhatIsFasterTogether) {
  const auto device = make_null_device(90);
  const auto is_formed = [&](std::string_view text) {
    Region region = parse_region(text);
    region.set_target(device->target());
    region.nodes[0].problem.constant_inputs = 2;
    EXPECT_TRUE(select_kernel(region).kernel) << text;
    return is_taken(region);
  };
  const auto gate = [&](int rows) {
    return is_formed(
        fmt::format("{{n0 = scaled_mm($0: i8[{0}, 256], $1: i8[512, 256], $2: f32[{0}, 2], $3: f32[4, 2]); n1 = "
                    "silu_and_mul(strict n0)}} anchor n0 -> n1",
                    rows));
  };
  EXPECT_TRUE(gate(1));
  EXPECT_FALSE(gate(64));
  const auto both = [&](std::string_view x, std::string_view w, int group) {
    return is_formed(
        fmt::format("{{n0 = conv($0: f16[{}], $1: f16[{}]) {{layout = \"nhwc\", group = {}}}; n1 = relu(strict n0)}} "
                    "anchor n0 -> n0, n1",
                    x, w, group));
  };
  EXPECT_TRUE(both("2, 19, 18, 40", "40, 1, 3, 3", 40));
  EXPECT_TRUE(both("2, 19, 18, 3", "40, 3, 3, 3", 1));
  EXPECT_FALSE(both("2, 19, 18, 36", "36, 36, 3, 3", 1));
}

TEST(ProductRegionChoice, WhatStopsAGateIsSaid) {
  const auto device = make_null_device(90);
  const auto reason = [&](std::string_view text) {
    Region region = parse_region(text);
    region.set_target(device->target());
    const auto kernels = cuda::kernels_of(region.problem().op->kind);
    const auto general =
        std::ranges::find_if(kernels, [](const Kernel* kernel) { return kernel->name.ends_with(".general"); });
    return decline_of(**general, region).value_or("takes it");
  };
  EXPECT_EQ(reason("{n0 = scaled_mm($0: i8[4, 256], $1: i8[320, 256], $2: f32[4, 2], $3: f32[3, 2]); n1 = "
                   "silu_and_mul(strict n0)} anchor n0 -> n1"),
            "Hopper's product is faster alone, and declines the rest: halves of 160 columns are not whole blocks, "
            "which share scales");
  EXPECT_EQ(
      reason("{n0 = linear($0: bf16[4, 64], $1: bf16[64, 64]); n1 = silu_and_mul(strict n0)} anchor n0 -> n0, n1"),
      "silu_and_mul after linear: only elementwise operators can follow");
  EXPECT_EQ(reason("{n0 = linear($0: bf16[4, 64], $1: bf16[64, 64]); n1 = silu_and_mul(strict n0) {interleaved = "
                   "true}} anchor n0 -> n1"),
            "silu_and_mul after linear: only elementwise operators can follow");
}

}  // namespace
}  // namespace cermet
