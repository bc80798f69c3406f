// The arithmetic that every backend's `sample` repeats.
#include "op/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cermet {
namespace {

// Known answers of the authors' Random123 library.
TEST(Philox, KnownAnswers) {
  const auto expect = [](Philox4 counter, std::uint32_t key0, std::uint32_t key1, Philox4 wanted) {
    const Philox4 bits = philox(counter, key0, key1);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(bits.word[i], wanted.word[i]) << "word " << i;
  };
  expect({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff, 0xffffffff,
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, SeedAndStepNameTheBits) {
  EXPECT_EQ(random_bits(7, 3), random_bits(7, 3));
  EXPECT_NE(random_bits(7, 3), random_bits(7, 4));
  EXPECT_NE(random_bits(7, 3), random_bits(8, 3));
  EXPECT_NE(random_bits(7, 1), random_bits(7, 1ull << 32));
  EXPECT_NE(random_bits(1, 3), random_bits(1ull << 32, 3));
}

TEST(SamplingExp, StaysWithinTwoUnitsInTheLastPlace) {
  for (float x = 0; x >= -28; x -= 0.00037f) {
    const double wanted = std::exp(static_cast<double>(x));
    EXPECT_NEAR(sampling_exp(x), wanted, 2 * std::ldexp(1.0, std::ilogb(wanted) - 23)) << x;
  }
  EXPECT_EQ(sampling_exp(0), 1);
  EXPECT_EQ(sampling_exp(-28.5f), 0);
  EXPECT_EQ(sampling_exp(-INFINITY), 0);
}

TEST(ScaleRandom, IsTheHighHalfOfTheProduct) {
  const std::uint64_t numbers[] = {
      0, 1, 0xffffffff, 0x100000000, 0x123456789abcdef0, 0x7fffffffffffffff, 0xffffffffffffffff};
  for (const std::uint64_t a : numbers)
    for (const std::uint64_t b : numbers)
      EXPECT_EQ(scale_random(a, b), static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64))
          << a << " " << b;
}

TEST(TopPWeight, IsAShareOfTheTotal) {
  EXPECT_EQ(top_p_weight(1ull << 62, 1.0f), 1ull << 62);
  EXPECT_EQ(top_p_weight(1ull << 62, 0.5f), 1ull << 61);
  EXPECT_EQ(top_p_weight(1000, 0.25f), 250u);
  EXPECT_EQ(top_p_weight(1000, 1e-20f), 0u);
}

TEST(OrderKey, SortsValuesAndGivesThemBack) {
  const float ascending[] = {-INFINITY, -3e38f, -1, -1e-45f, 0, 1e-45f, 1, 3e38f, INFINITY};
  for (std::size_t i = 1; i < std::size(ascending); ++i)
    EXPECT_LT(order_key(ascending[i - 1]), order_key(ascending[i]));
  for (const float x : ascending) EXPECT_EQ(value_of_order_key(order_key(x)), x);
  EXPECT_EQ(order_key(-0.0f), order_key(0.0f));
  EXPECT_GT(order_key(NAN), order_key(INFINITY));
  EXPECT_EQ(order_key(-NAN), order_key(NAN));
  EXPECT_GT(order_key(-INFINITY), 0u);
}

}  // namespace
}  // namespace cermet
