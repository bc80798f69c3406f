#include "base/dim.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace cermet {
namespace {

const Dim t = Dim::symbol("T"), b = Dim::symbol("B");

SymbolValues values_of(std::int64_t t_value, std::int64_t b_value) {
  SymbolValues values;
  values.set(symbol_id("T"), t_value);
  values.set(symbol_id("B"), b_value);
  return values;
}

TEST(Dim, ConstantsBehaveLikeIntegers) {
  EXPECT_EQ(Dim(6) + 7, Dim(13));
  EXPECT_EQ(Dim(6) * 7, Dim(42));
  EXPECT_EQ((Dim(6) + -7).constant(), -1);
  EXPECT_TRUE(Dim(3).is_constant());
  EXPECT_FALSE(t.is_constant());
}

TEST(Dim, ArithmeticAgreesWithItsValues) {
  for (const std::int64_t n : {0, 1, 5, 1000}) {
    const SymbolValues values = values_of(n, 3);
    EXPECT_EQ((t + 4).value(values), n + 4);
    EXPECT_EQ((4 + t * 3).value(values), 4 + 3 * n);
    EXPECT_EQ(((t + 2) * 5).value(values), (n + 2) * 5);
    EXPECT_EQ((t + t).value(values), 2 * n);
    EXPECT_EQ((t * 6 + 12).divided_by(6).value(values), n + 2);
  }
}

TEST(Dim, SymbolsCancel) {
  EXPECT_EQ(t + t * -1, Dim(0));
  EXPECT_EQ(t * 0, Dim(0));
  EXPECT_EQ((t + 3) + t * -1, Dim(3));
}

TEST(Dim, EqualityIsStructural) {
  EXPECT_EQ(t + 1, 1 + t);
  EXPECT_NE(t, b);
  EXPECT_NE(t, t + 1);
  EXPECT_NE(t, Dim(5));
}

TEST(Dim, TwoSymbolsInOneDimensionAreUnsupported) {
  for (const auto& make : {+[] { return t + b; }, +[] { return t * b; }, +[] { return t * t; }}) {
    try {
      make();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_NE(std::string(error.what()).find("expected at most one symbol in a dimension"), std::string::npos) << error.what();
    }
  }
}

TEST(Dim, DivisionIsExact) {
  EXPECT_THROW(t.divided_by(2), Error);
  EXPECT_THROW((t * 4 + 2).divided_by(4), Error);
  EXPECT_THROW(Dim(7).divided_by(2), Error);
  EXPECT_THROW(Dim(7).divided_by(0), Error);
  EXPECT_THROW(Dim(7).divided_by(-7), Error);
}

TEST(Dim, OverflowIsAnError) {
  const Dim huge = std::int64_t{1} << 62;
  EXPECT_THROW(huge + huge, Error);
  EXPECT_THROW(huge * 4, Error);
  EXPECT_THROW(t * (std::int64_t{1} << 62) * 4, Error);
  EXPECT_THROW(product({huge, huge}), Error);
}

TEST(Dim, Text) {
  EXPECT_EQ(Dim(4096).to_string(), "4096");
  EXPECT_EQ(t.to_string(), "T");
  EXPECT_EQ((t * 8).to_string(), "8*T");
  EXPECT_EQ((t + 1).to_string(), "T+1");
  EXPECT_EQ((t * 2 + -3).to_string(), "2*T-3");
  EXPECT_EQ(to_string(Dims{t, 4096}), "[T, 4096]");
  EXPECT_EQ(to_string(Dims{}), "[]");
}

TEST(Dim, Products) {
  EXPECT_EQ(product({}), Dim(1));
  EXPECT_EQ(product({2, t, 3}), t * 6);
  EXPECT_EQ(product({0, 5}), Dim(0));
}

TEST(Symbols, HaveStableIds) {
  EXPECT_EQ(symbol_id("T"), symbol_id("T"));
  EXPECT_NE(symbol_id("T"), symbol_id("B"));
  EXPECT_EQ(symbol_name(symbol_id("T")), "T");
  EXPECT_EQ(symbol_name(0), "");
}

TEST(SymbolsDeathTest, RunOutWithAClearError) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";  // in a separate process: symbols are never freed
  const auto use_up = [] {
    try {
      for (int i = 0; i <= SymbolValues::capacity; ++i) symbol_id(fmt::format("s{}", i));
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::exit(7);
    }
    std::exit(0);
  };
  EXPECT_EXIT(use_up(), testing::ExitedWithCode(7), "expected at most 63 symbols in a process");
}

}  // namespace
}  // namespace cermet
