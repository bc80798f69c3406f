// What devices are taken to do before anybody measures them.
#include "base/device_limits.hpp"

#include <gtest/gtest.h>

#include "base/target.hpp"

namespace cermet {
namespace {

TEST(DeviceLimits, MeasuredOnesComeBeforeADataSheet) {
  Target target{"GPU", 90, 132, 0, 0, 0};
  const DeviceLimits sheet = limits_of(&target);
  EXPECT_EQ(sheet.source, "data sheet of H200");
  EXPECT_NEAR(sheet.bf16_operations_per_second, 949e12, 1e12);
  EXPECT_EQ(sheet.operations_per_second(DType::i32), sheet.f32_operations_per_second);
  target.measured =
      std::make_shared<const DeviceLimits>(DeviceLimits{.source = "measured", .read_bytes_per_second = 1e12});
  EXPECT_EQ(limits_of(&target).source, "measured; the rest from the data sheet of H200");
  EXPECT_EQ(limits_of(&target).bf16_operations_per_second, sheet.bf16_operations_per_second) << "what was not measured";
  EXPECT_EQ(limits_of(&target).read_bytes_per_second, 1e12);
}

TEST(DeviceLimits, AreInProportionToTheMultiprocessors) {
  const Target whole{"GPU", 80, 108, 0, 0, 0}, half{"GPU", 80, 54, 0, 0, 0}, newer{"GPU", 87, 108, 0, 0, 0};
  EXPECT_EQ(limits_of(&whole).source, "data sheet of A100 80GB");
  EXPECT_EQ(limits_of(&half).f16_operations_per_second, limits_of(&whole).f16_operations_per_second / 2);
  EXPECT_EQ(limits_of(&half).read_bytes_per_second, limits_of(&whole).read_bytes_per_second / 2);
  EXPECT_EQ(limits_of(&newer).source, "data sheet of A10") << "the newest architecture that is not newer";
  EXPECT_GT(limits_of(nullptr).f32_operations_per_second, 0);
}

}  // namespace
}  // namespace cermet
