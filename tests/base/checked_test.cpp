#include "base/checked.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"

namespace cermet {
namespace {

constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max(),
                       lowest = std::numeric_limits<std::int64_t>::min();

TEST(Checked, ReportsOverflow) {
  EXPECT_EQ(checked_mul(highest, 1), highest);
  EXPECT_EQ(checked_mul(1 << 20, 1 << 20), std::int64_t{1} << 40);
  EXPECT_FALSE(checked_mul(highest, 2));
  EXPECT_FALSE(checked_mul(lowest, -1));
  EXPECT_EQ(checked_add(highest, 0), highest);
  EXPECT_FALSE(checked_add(highest, 1));
  EXPECT_FALSE(checked_add(lowest, -1));
}

TEST(Checked, RoundsUp) {
  EXPECT_EQ(round_up(0, 64), 0);
  EXPECT_EQ(round_up(1, 64), 64);
  EXPECT_EQ(round_up(64, 64), 64);
  EXPECT_EQ(div_up(0, 3), 0);
  EXPECT_EQ(div_up(7, 3), 3);
  EXPECT_EQ(div_up(9, 3), 3);
}

TEST(Error, CarriesStatusAndMessage) {
  try {
    fail(Status::unsupported, "operand {}: expected {}, found {}", 2, "f32", "i8");
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_STREQ(error.what(), "operand 2: expected f32, found i8");
  }
  EXPECT_NO_THROW(require(true, "never"));
  EXPECT_THROW(require(false, "always"), Error);
  try {
    CERMET_ASSERT(1 > 2);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::internal);
    EXPECT_NE(std::string(error.what()).find("1 > 2"), std::string::npos);
  }
  EXPECT_STREQ(status_name(Status::out_of_memory), "out_of_memory");
}

}  // namespace
}  // namespace cermet
