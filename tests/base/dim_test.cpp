#include "base/dim.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "base/error.hpp"

namespace cermet {
namespace {

const Dim t = Dim::symbol("T"), b = Dim::symbol("B");

SymbolValues values_of(std::int64_t t_value, std::int64_t b_value) {
  SymbolValues values;
  values.set(Symbol("T"), t_value);
  values.set(Symbol("B"), b_value);
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

/// Equal polynomials are equal however they were made; the text is in canonical order.
TEST(Dim, PolynomialsOfSeveralSymbols) {
  const Dim h = Dim::symbol("H");
  EXPECT_EQ((t + b) * (t - b), t * t - b * b);
  EXPECT_EQ((t + 1) * (b + 1), b * t + t + b + 1);
  EXPECT_EQ(((h + b) * t).to_string(), "B*T+H*T");
  EXPECT_EQ((t * t * 3 - t * 2 - 1).to_string(), "3*T*T-2*T-1");
  EXPECT_EQ((b * t - t * b), Dim(0));
  EXPECT_NE(b * t, b + t);
  EXPECT_EQ((b * t * 64).divided_by(t * 8), b * 8);
  EXPECT_EQ((b * t + b + t + 1).divided_by(t + 1), b + 1);
  EXPECT_EQ(exact_quotient(b * t + b + t + 2, t + 1), std::nullopt);
  EXPECT_EQ(exact_quotient(b, t), std::nullopt);
  EXPECT_EQ(exact_quotient(b, 0), std::nullopt);
  EXPECT_EQ(exact_quotient(0, t), Dim(0));
  EXPECT_EQ((b * t + 1).symbols(), (std::vector{Symbol("B"), Symbol("T")}));
  EXPECT_TRUE(t.is(Symbol("T")));
  EXPECT_FALSE((t + 1).is(Symbol("T")));
  EXPECT_FALSE(t.is(Symbol("B")));
}

TEST(Dim, QuotientsHaveOneForm) {
  const Dim h = Dim::symbol("H");
  EXPECT_EQ(ceil_div(h, 2).to_string(), "ceil(H/2)");
  EXPECT_EQ(floor_div(h + 1, 2), ceil_div(h, 2));
  EXPECT_EQ(floor_div(h * 2 + 1, 2), h);
  EXPECT_EQ(floor_div(h * 5 + 7, 2).to_string(), "2*H+ceil(H/2)+3");
  EXPECT_EQ(floor_div(h * 4 + 2, 6), floor_div(h * 2 + 1, 3)) << "without a common divisor";
  EXPECT_EQ(floor_div(h * 2 + 1, 4), floor_div(h, 2));
  EXPECT_EQ(ceil_div(ceil_div(h, 2), 2), ceil_div(h, 4)) << "a quotient of a quotient";
  EXPECT_EQ(floor_div(h * -1, 2), h * -1 + floor_div(h, 2));
  EXPECT_EQ(floor_div(h * t, t), h);
  EXPECT_EQ(floor_div(h, t).to_string(), "floor(H/T)");
  EXPECT_EQ(floor_div(-7, 2), Dim(-4));
  EXPECT_EQ(ceil_div(7, 2), Dim(4));
  EXPECT_EQ((floor_div(h, 2) * t + 1).to_string(), "T*floor(H/2)+1");
  EXPECT_THROW(floor_div(h, 0), Error);
  EXPECT_THROW(floor_div(h, -2), Error);
}

TEST(Dim, ExtremaHaveOneForm) {
  EXPECT_EQ(dim_min(t, 8).to_string(), "min(8,T)");
  EXPECT_EQ(dim_min(t, 8), dim_min(8, t));
  EXPECT_EQ(dim_max(t, t + 1), t + 1);
  EXPECT_EQ(dim_min(t, t + 1), t);
  EXPECT_EQ(dim_min(dim_min(t, 8), dim_min(5, b)), dim_min(dim_min(b, t), 5));
  EXPECT_EQ(dim_max(3, 9), Dim(9));
  EXPECT_NE(dim_max(t, 8), dim_min(t, 8));
}

/// A random expression beside a function that computes it with plain integers.
struct Random {
  Dim dim;
  std::function<std::int64_t(std::int64_t, std::int64_t)> value;
};

Random random_expression(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth == 0) {
    const std::int64_t c = pick(9) - 4;
    switch (pick(3)) {
      case 0: return {t, [](std::int64_t x, std::int64_t) { return x; }};
      case 1: return {b, [](std::int64_t, std::int64_t y) { return y; }};
      default: return {c, [c](std::int64_t, std::int64_t) { return c; }};
    }
  }
  const Random l = random_expression(random, depth - 1), r = random_expression(random, depth - 1);
  const std::int64_t d = 1 + pick(6);
  const auto down = [](std::int64_t a, std::int64_t by) { return a / by - (a % by < 0 ? 1 : 0); };
  switch (pick(7)) {
    case 0: return {l.dim + r.dim, [=](auto x, auto y) { return l.value(x, y) + r.value(x, y); }};
    case 1: return {l.dim - r.dim, [=](auto x, auto y) { return l.value(x, y) - r.value(x, y); }};
    case 2: return {l.dim * r.dim, [=](auto x, auto y) { return l.value(x, y) * r.value(x, y); }};
    case 3: return {floor_div(l.dim, d), [=](auto x, auto y) { return down(l.value(x, y), d); }};
    case 4: return {ceil_div(l.dim, d), [=](auto x, auto y) { return -down(-l.value(x, y), d); }};
    case 5: return {dim_min(l.dim, r.dim), [=](auto x, auto y) { return std::min(l.value(x, y), r.value(x, y)); }};
    default: return {dim_max(l.dim, r.dim), [=](auto x, auto y) { return std::max(l.value(x, y), r.value(x, y)); }};
  }
}

TEST(Dim, RandomExpressionsAgreeWithIntegersAndLieWithinTheirBounds) {
  std::mt19937 random(7);
  const SymbolRanges ranges{{Symbol("T"), {0, 9}}, {Symbol("B"), {2, 5}}};
  for (int i = 0; i < 2000; ++i) {
    const Random e = random_expression(random, 1 + i % 4);
    const DimRange bounds = e.dim.bounds(ranges);
    std::int64_t before = std::numeric_limits<std::int64_t>::min();
    for (std::int64_t x = 0; x <= 9; ++x) {
      for (std::int64_t y = 2; y <= 5; ++y) {
        const std::int64_t value = e.value(x, y);
        ASSERT_EQ(e.dim.value(values_of(x, y)), value) << e.dim.to_string() << " at T = " << x << ", B = " << y;
        ASSERT_LE(bounds.least, value) << e.dim.to_string();
        ASSERT_GE(bounds.greatest, value) << e.dim.to_string();
      }
      ASSERT_TRUE(!e.dim.grows_with_symbols() || before <= e.value(x, 3)) << e.dim.to_string() << " at T = " << x;
      before = e.value(x, 3);
    }
  }
}

TEST(Dim, BoundsAreTightWhereASymbolOccursOnce) {
  const SymbolRanges ranges{{Symbol("T"), {1, 100}}, {Symbol("B"), {2, 8}}};
  EXPECT_EQ((b * t * 3 + 1).bounds(ranges), (DimRange{7, 2401}));
  EXPECT_EQ((t * -1 + 8).bounds(ranges), (DimRange{-92, 7}));
  EXPECT_EQ(ceil_div(t, 8).bounds(ranges), (DimRange{1, 13}));
  EXPECT_EQ(dim_min(t, b).bounds(ranges), (DimRange{1, 8}));
  EXPECT_EQ(Dim::symbol("free").bounds(ranges), DimRange{}) << "any number from 0";
  EXPECT_EQ((Dim::symbol("free") * 8 + 1).bounds(ranges).greatest, std::numeric_limits<std::int64_t>::max());
}

TEST(Dim, GrowsWithItsSymbols) {
  EXPECT_TRUE((b * t * 2 - 5).grows_with_symbols());
  EXPECT_TRUE(ceil_div(t - 3, 2).grows_with_symbols());
  EXPECT_TRUE(dim_max(t - 3, 0).grows_with_symbols());
  EXPECT_FALSE((8 - t).grows_with_symbols());
  EXPECT_FALSE((b * t - t).grows_with_symbols());
  EXPECT_FALSE(floor_div(b, t).grows_with_symbols());
}

TEST(Dim, DivisorsThatAreNotPositiveAreErrorsWhereTheirValueIsKnown) {
  try {
    floor_div(b, t - 3).value(values_of(3, 8));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "dimension floor(B/(T-3)): expected a positive divisor, found 0");
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
  EXPECT_THROW(t * (std::int64_t{1} << 62) + t * (std::int64_t{1} << 62), Error);
  EXPECT_THROW((b * t).value(values_of(std::int64_t{1} << 40, std::int64_t{1} << 40)), Error);
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

TEST(Symbols, AreKeptOncePerName) {
  EXPECT_EQ(Symbol("T"), Symbol("T"));
  EXPECT_NE(Symbol("T"), Symbol("B"));
  EXPECT_EQ(Symbol("T").name(), "T");
}

TEST(Symbols, ThousandsAreFreedWithTheirLastUser) {
  const std::size_t before = Symbol::kept();
  {
    std::vector<Dim> dims;
    for (int i = 0; i < 5000; ++i) dims.push_back(Dim::symbol(fmt::format("s{}", i)) * t + 1);
    EXPECT_EQ(Symbol::kept(), before + 5000);
    const Dim copy = dims[17];
    dims.clear();
    EXPECT_EQ(Symbol::kept(), before + 1);
    EXPECT_EQ(copy.to_string(), "T*s17+1");
  }
  EXPECT_EQ(Symbol::kept(), before);
}

TEST(Symbols, AreMadeAndFreedByManyThreads) {
  const std::size_t before = Symbol::kept();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 2000; ++n)
        EXPECT_EQ(Symbol(fmt::format("shared{}", n % 3)), Symbol(fmt::format("shared{}", n % 3)));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Symbol::kept(), before);
}

TEST(Symbols, HaveNamesThatTheTextFormReads) {
  for (const char* name : {"", "8T", "a b", "batch-size", "T*2", "\xff"}) EXPECT_THROW(Symbol{name}, Error) << name;
  EXPECT_NO_THROW(Symbol("_q_len8"));
}

TEST(SymbolValues, HoldAnyNumberOfSymbols) {
  SymbolValues values;
  for (int i = 0; i < 100; ++i) values.set(Symbol(fmt::format("v{}", i)), i);
  for (int i = 0; i < 100; ++i) values.set(Symbol(fmt::format("v{}", i)), values[Symbol(fmt::format("v{}", i))] + 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[Symbol(fmt::format("v{}", i))], i + 1);
  EXPECT_EQ(values[Symbol("other")], 0);
}

}  // namespace
}  // namespace cermet
