// The quality that docs/guide/quantize.md states, held on a shorter text that calibration does not see, and by the fast
// tests on its start. tests/python has the case with outliers.
#include "tests/cli/rise.hpp"

namespace cermet::test {
namespace {

constexpr int start = 15000;

TEST(QuantizeQuality, WeightsAloneCostATenthOfAPerCent) {
  EXPECT_LE(rise("models/demo", "--scheme w8a16", start), 0.1);
}

TEST(QuantizeQuality, DynamicScalesCostThreeTenths) {
  EXPECT_LE(rise("models/demo", "--scheme w8a8_dynamic", start), 0.3);
}

TEST(QuantizeQuality, TheDefaultPolicyCostsEightTenths) { EXPECT_LE(rise("models/demo", "", start), 0.8); }

TEST(LongQuantizeQuality, WeightsAloneCostATenthOfAPerCent) { EXPECT_LE(rise("models/demo", "--scheme w8a16"), 0.1); }

TEST(LongQuantizeQuality, DynamicScalesCostThreeTenths) {
  EXPECT_LE(rise("models/demo", "--scheme w8a8_dynamic"), 0.3);
}

TEST(LongQuantizeQuality, TheDefaultPolicyCostsEightTenths) { EXPECT_LE(rise("models/demo", ""), 0.8); }

}  // namespace
}  // namespace cermet::test
