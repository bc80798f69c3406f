// The quality that docs/guide/quantize.md states, held on a shorter text that calibration does not see. tests/python has the case with outliers.
#include "tests/cli/rise.hpp"

namespace cermet::test {
namespace {

TEST(QuantizeQuality, WeightsAloneCostATenthOfAPerCent) { EXPECT_LE(rise("models/demo", "--scheme w8a16"), 0.1); }

TEST(QuantizeQuality, DynamicScalesCostThreeTenths) { EXPECT_LE(rise("models/demo", "--scheme w8a8_dynamic"), 0.3); }

TEST(QuantizeQuality, TheDefaultPolicyCostsEightTenths) { EXPECT_LE(rise("models/demo", ""), 0.8); }

}  // namespace
}  // namespace cermet::test
