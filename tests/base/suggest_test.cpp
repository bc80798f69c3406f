#include "base/suggest.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cermet {
namespace {

constexpr std::array<std::string_view, 4> known{"THREADS", "TUNING", "LOG", "DISABLE_KERNELS"};

TEST(ClosestName, IsAFewChangesAway) {
  EXPECT_EQ(closest_name("THREAD", known), "THREADS");
  EXPECT_EQ(closest_name("threads", known), "THREADS");
  EXPECT_EQ(closest_name("TUNNING", known), "TUNING");
  EXPECT_EQ(closest_name("LGO", known), "LOG") << "swapped letters are one change";
  EXPECT_EQ(closest_name("DISABLED_KERNEL", known), "DISABLE_KERNELS");
}

TEST(ClosestName, IsEmptyWhereNoneIsClose) {
  EXPECT_EQ(closest_name("MODEL", known), "");
  EXPECT_EQ(closest_name("", known), "");
  EXPECT_EQ(closest_name("THREADS", {}), "");
}

}  // namespace
}  // namespace cermet
