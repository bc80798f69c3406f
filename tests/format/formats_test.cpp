// Every bit pattern of every small format, and every rounding boundary between adjacent values.
#include <gtest/gtest.h>

#include <cmath>

#include "format/element.hpp"

namespace cermet::format {
namespace {

/// A format by its fields, decoded by the definition rather than by bit tricks.
struct Layout {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity;  ///< as IEEE; else only the highest bit pattern is NaN (e4m3)

  int sign_shift() const { return exponent_bits + mantissa_bits; }
  std::uint32_t codes() const { return 2u << sign_shift(); }
  std::uint32_t exponent_of(std::uint32_t code) const { return (code >> mantissa_bits) & ((1u << exponent_bits) - 1); }
  std::uint32_t mantissa_of(std::uint32_t code) const { return code & ((1u << mantissa_bits) - 1); }
  bool all_ones(std::uint32_t code) const { return exponent_of(code) == (1u << exponent_bits) - 1; }
  bool is_nan(std::uint32_t code) const {
    return all_ones(code) && (has_infinity ? mantissa_of(code) != 0 : mantissa_of(code) == (1u << mantissa_bits) - 1);
  }
  bool is_infinite(std::uint32_t code) const { return has_infinity && all_ones(code) && mantissa_of(code) == 0; }

  double decode(std::uint32_t code) const {
    const double sign = code >> sign_shift() ? -1 : 1;
    if (is_nan(code)) return NAN;
    if (is_infinite(code)) return sign * INFINITY;
    const int exponent = static_cast<int>(exponent_of(code));
    const double fraction = std::ldexp(static_cast<double>(mantissa_of(code)), -mantissa_bits);
    return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
  }
  std::uint32_t largest_finite() const {
    std::uint32_t code = (1u << sign_shift()) - 1;
    while (!std::isfinite(decode(code))) --code;
    return code;
  }
};

constexpr Layout layouts[] = {{DType::f16, 5, 10, 15, true},
                              {DType::bf16, 8, 7, 127, true},
                              {DType::f8_e4m3, 4, 3, 7, false},
                              {DType::f8_e5m2, 5, 2, 15, true}};

/// The bit pattern that storing `value` gives, from float or from double.
std::uint32_t stored(DType dtype, double value) {
  std::uint64_t bits = 0;
  store_element(&bits, dtype, 0, value);
  return static_cast<std::uint32_t>(bits);
}
std::uint32_t encoded(DType dtype, float value) {
  switch (dtype) {
    case DType::f16: return to_f16(value).bits;
    case DType::bf16: return to_bf16(value).bits;
    case DType::f8_e4m3: return to_e4m3(value).bits;
    default: return to_e5m2(value).bits;
  }
}

class Formats : public testing::TestWithParam<Layout> {};

TEST_P(Formats, EveryCodeDecodesByItsDefinition) {
  const Layout& format = GetParam();
  for (std::uint32_t code = 0; code < format.codes(); ++code) {
    const std::uint64_t bits = code;  // room for an element of any type
    const double expected = format.decode(code), found = load_element(&bits, format.dtype, 0);
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(found)) << code;
    else
      EXPECT_TRUE(expected == found && std::signbit(expected) == std::signbit(found))
          << code << ": expected " << expected << ", found " << found;
  }
}

TEST_P(Formats, EveryCodeSurvivesARoundTrip) {
  const Layout& format = GetParam();
  for (std::uint32_t code = 0; code < format.codes(); ++code) {
    const auto value = static_cast<float>(format.decode(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(format.is_nan(encoded(format.dtype, value))) << code;
    } else {
      EXPECT_EQ(encoded(format.dtype, value), code);
      EXPECT_EQ(stored(format.dtype, value), code);
    }
  }
}

TEST_P(Formats, RoundsToNearestAndTiesToEven) {
  const Layout& format = GetParam();
  const std::uint32_t sign = 1u << format.sign_shift();
  for (std::uint32_t low = 0; low < format.largest_finite(); ++low) {
    const std::uint32_t high = low + 1, even = low % 2 == 0 ? low : high;
    const auto middle = static_cast<float>((format.decode(low) + format.decode(high)) / 2);
    EXPECT_EQ(encoded(format.dtype, middle), even) << low;
    EXPECT_EQ(encoded(format.dtype, std::nextafter(middle, 0.0f)), low) << low;
    EXPECT_EQ(encoded(format.dtype, std::nextafter(middle, INFINITY)), high) << low;
    EXPECT_EQ(encoded(format.dtype, -middle), even | sign) << low;
    EXPECT_EQ(encoded(format.dtype, -std::nextafter(middle, 0.0f)), low | sign) << low;
  }
}

TEST_P(Formats, RoundsADoubleOnce) {
  const Layout& format = GetParam();
  const std::uint32_t sign = 1u << format.sign_shift();
  for (std::uint32_t low = 0; low < format.largest_finite(); ++low) {
    const double middle = (format.decode(low) + format.decode(low + 1)) / 2;  // closer to it than any float
    EXPECT_EQ(stored(format.dtype, std::nextafter(middle, 0.0)), low);
    EXPECT_EQ(stored(format.dtype, std::nextafter(middle, INFINITY)), low + 1);
    EXPECT_EQ(stored(format.dtype, -std::nextafter(middle, INFINITY)), (low + 1) | sign);
    EXPECT_EQ(stored(format.dtype, middle), low % 2 == 0 ? low : low + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Formats, testing::ValuesIn(layouts),
                         [](const auto& test) { return std::string(name_of(test.param.dtype)); });

TEST(Half, KnownValues) {
  const std::pair<float, int> table[] = {
      {0.0f, 0x0000},     {-0.0f, 0x8000},    {1.0f, 0x3c00},     {-2.0f, 0xc000},      {65504.0f, 0x7bff},
      {0x1p-14f, 0x0400}, {0x1p-24f, 0x0001}, {0x1p-25f, 0x0000}, {0x1.8p-24f, 0x0002}, {0.333251953125f, 0x3555}};
  for (const auto& [value, bits] : table) EXPECT_EQ(to_f16(value).bits, bits) << value;
}

TEST(Half, OverflowsToInfinity) {
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(to_f16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(to_f16(INFINITY).bits, 0x7c00);
  EXPECT_EQ(stored(DType::f16, 1e300), 0x7c00u);
}

TEST(BFloat16, KnownValues) {
  const std::pair<float, int> table[] = {{1.0f, 0x3f80},      {-1.0f, 0xbf80},       {3.140625f, 0x4049},
                                         {0x1p-133f, 0x0001}, {0x1.fep127f, 0x7f7f}, {0x1.00ffp0f, 0x3f80}};
  for (const auto& [value, bits] : table) EXPECT_EQ(to_bf16(value).bits, bits) << value;
}

TEST(BFloat16, OverflowsToInfinityAndKeepsNaN) {
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_bf16(-INFINITY).bits, 0xff80);
  // A NaN whose upper half is that of an infinity must not become one.
  EXPECT_TRUE(std::isnan(to_float(to_bf16(float_from_bits(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(float_from_bits(0xffffffffu)))));
}

TEST(Fp8, SaturatesFiniteValues) {
  for (float x : {448.0f, 449.0f, 464.0f, 465.0f, 1e6f, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(to_e4m3(x).bits, 0x7e) << x;
    EXPECT_EQ(to_e4m3(-x).bits, 0xfe) << x;
  }
  for (float x : {57344.0f, 61440.0f, 65536.0f, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(to_e5m2(x).bits, 0x7b) << x;
    EXPECT_EQ(to_e5m2(-x).bits, 0xfb) << x;
  }
  EXPECT_EQ(to_float(e4m3{0x7e}), e4m3_max);
  EXPECT_EQ(to_float(e5m2{0x7b}), e5m2_max);
  EXPECT_EQ(stored(DType::f8_e4m3, 1e300), 0x7eu);
  EXPECT_EQ(stored(DType::f8_e5m2, -1e300), 0xfbu);
}

TEST(Fp8, KeepsNonFiniteValuesNonFinite) {
  EXPECT_EQ(to_e4m3(INFINITY).bits, 0x7f);
  EXPECT_EQ(to_e4m3(-INFINITY).bits, 0xff);
  EXPECT_TRUE(std::isnan(to_float(to_e4m3(NAN))));
  EXPECT_EQ(to_e5m2(INFINITY).bits, 0x7c);
  EXPECT_EQ(to_e5m2(-INFINITY).bits, 0xfc);
  EXPECT_TRUE(std::isnan(to_float(to_e5m2(NAN))));
}

TEST(RoundToOdd, KeepsFloatsAndMarksTheRest) {
  EXPECT_EQ(round_to_odd(0.5), 0.5f);
  EXPECT_EQ(round_to_odd(-0.0), 0.0f);
  EXPECT_TRUE(std::isnan(round_to_odd(static_cast<double>(NAN))));
  EXPECT_EQ(round_to_odd(static_cast<double>(INFINITY)), INFINITY);
  EXPECT_EQ(round_to_odd(1 + 0x1p-40), 1 + 0x1p-23f);
  EXPECT_EQ(round_to_odd(-(1 + 0x1p-40)), -(1 + 0x1p-23f));
  EXPECT_EQ(round_to_odd(1e-300), 0x1p-149f);
  EXPECT_EQ(round_to_odd(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(round_to_odd(static_cast<long double>(0x1p62L + 1)), 0x1p62f + 0x1p39f);
}

TEST(Integers, RoundHalfToEvenAndSaturate) {
  const auto as_i8 = [](double value) {
    std::int8_t codes[8] = {};
    store_element(codes, DType::i8, 0, value);
    return static_cast<int>(codes[0]);
  };
  const std::pair<double, int> table[] = {{0.5, 0},       {1.5, 2},          {2.5, 2},     {-0.5, 0},
                                          {-1.5, -2},     {127.4, 127},      {127.5, 127}, {1e300, 127},
                                          {-128.5, -128}, {-INFINITY, -128}, {NAN, 0}};
  for (const auto& [value, code] : table) EXPECT_EQ(as_i8(value), code) << value;
  EXPECT_EQ(saturate<std::uint8_t>(-1), 0);
  EXPECT_EQ(saturate<std::uint8_t>(255.5), 255);
  EXPECT_EQ(saturate<std::int64_t>(9.3e18), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(saturate<std::int64_t>(-9.3e18), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(saturate<std::uint64_t>(1.9e19), std::numeric_limits<std::uint64_t>::max());
}

TEST(Elements, EveryTypeLoadsWhatWasStored) {
  for (int t = 0; t < dtype_count; ++t) {
    const auto dtype = static_cast<DType>(t);
    std::uint64_t memory[3] = {};
    store_element(memory, dtype, 1, 1);
    const double zero = dtype == DType::f8_e8m0 ? 0x1p-127 : 0;  // which has powers of two only
    EXPECT_EQ(load_element(memory, dtype, 0), zero) << name_of(dtype);
    EXPECT_EQ(load_element(memory, dtype, 1), 1) << name_of(dtype);
    EXPECT_EQ(load_element(memory, dtype, 2), zero) << name_of(dtype);
  }
}

}  // namespace
}  // namespace cermet::format
