// Every bit pattern of e4m3fnuz, e5m2fnuz and e8m0, and every rounding boundary between adjacent values.
#include "format/fp8_variants.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cermet::format {
namespace {

/// A format with one zero and one NaN by its fields, decoded by the definition.
struct Fnuz {
  const char* name;
  int exponent_bits, mantissa_bits, bias;
  float (*decode)(unsigned char);
  unsigned char (*encode)(float);

  double defined(int code) const {
    if (code == 0x80) return NAN;
    const int exponent = (code & 0x7f) >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    return (code & 0x80 ? -1 : 1) *
           (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
  }
};

const Fnuz formats[] = {{"e4m3fnuz", 4, 3, 8, [](unsigned char bits) { return to_float(e4m3fnuz{bits}); },
                         [](float x) { return to_e4m3fnuz(x).bits; }},
                        {"e5m2fnuz", 5, 2, 16, [](unsigned char bits) { return to_float(e5m2fnuz{bits}); },
                         [](float x) { return to_e5m2fnuz(x).bits; }}};

class FnuzFormats : public testing::TestWithParam<Fnuz> {};

TEST_P(FnuzFormats, EveryCodeDecodesByItsDefinitionAndSurvivesARoundTrip) {
  const Fnuz& format = GetParam();
  for (int code = 0; code < 256; ++code) {
    const double expected = format.defined(code), found = format.decode(static_cast<unsigned char>(code));
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(found)) << code;
    else
      EXPECT_TRUE(expected == found && std::signbit(expected) == std::signbit(found))
          << code << ": expected " << expected << ", found " << found;
    EXPECT_EQ(format.encode(static_cast<float>(expected)), code);
  }
}

TEST_P(FnuzFormats, RoundsToNearestAndTiesToEven) {
  const Fnuz& format = GetParam();
  for (int low = 0; low < 0x7f; ++low) {
    const int high = low + 1, even = low % 2 == 0 ? low : high;
    const auto negative = [](int code) { return code == 0 ? 0 : code | 0x80; };
    const auto middle = static_cast<float>((format.defined(low) + format.defined(high)) / 2);
    EXPECT_EQ(format.encode(middle), even) << low;
    EXPECT_EQ(format.encode(std::nextafter(middle, 0.0f)), low);
    EXPECT_EQ(format.encode(std::nextafter(middle, INFINITY)), high);
    EXPECT_EQ(format.encode(-middle), negative(even)) << low;
    EXPECT_EQ(format.encode(-std::nextafter(middle, 0.0f)), negative(low));
  }
}

TEST_P(FnuzFormats, SaturatesFiniteValuesAndHasNoInfinity) {
  const Fnuz& format = GetParam();
  const auto largest = static_cast<float>(format.defined(0x7f));
  for (float x : {largest, largest * 1.07f, largest * 2, 3e38f}) {
    EXPECT_EQ(format.encode(x), 0x7f) << x;
    EXPECT_EQ(format.encode(-x), 0xff) << x;
  }
  EXPECT_EQ(format.encode(INFINITY), 0x80);
  EXPECT_EQ(format.encode(-INFINITY), 0x80);
  EXPECT_EQ(format.encode(-0.0f), 0);
}

INSTANTIATE_TEST_SUITE_P(All, FnuzFormats, testing::ValuesIn(formats),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(E8m0, RoundsToPowersOfTwo) {
  for (int code = 0; code < 255; ++code) {
    const float value = std::ldexp(1.0f, code - 127);
    const auto coded = [](float x, Rounding rounding) { return static_cast<int>(to_e8m0(x, rounding).bits); };
    EXPECT_EQ(to_float(e8m0{static_cast<unsigned char>(code)}), value);
    const int next = std::min(code + 1, 254);
    const float middle = value * 1.5f;
    for (Rounding rounding : {Rounding::zero, Rounding::nearest, Rounding::up}) EXPECT_EQ(coded(value, rounding), code);
    EXPECT_EQ(coded(std::nextafter(value, INFINITY), Rounding::zero), code);
    EXPECT_EQ(coded(std::nextafter(value, INFINITY), Rounding::nearest), code);
    EXPECT_EQ(coded(std::nextafter(value, INFINITY), Rounding::up), next);
    EXPECT_EQ(coded(std::nextafter(middle, 0.0f), Rounding::nearest), code);
    EXPECT_EQ(coded(middle, Rounding::nearest), next);
    EXPECT_EQ(coded(middle, Rounding::zero), code);
    EXPECT_EQ(coded(middle, Rounding::up), next);
  }
}

TEST(E8m0, HasNeitherZeroNorSign) {
  for (Rounding rounding : {Rounding::zero, Rounding::nearest, Rounding::up}) {
    for (float x : {0.0f, -0.0f, 1e-45f, 5e-39f}) EXPECT_EQ(to_e8m0(x, rounding).bits, 0) << x;
    for (float x : {-1e-45f, -1.0f, INFINITY, -INFINITY, NAN}) EXPECT_EQ(to_e8m0(x, rounding).bits, 0xff) << x;
    EXPECT_EQ(to_e8m0(3.4e38f, rounding).bits, 0xfe);
  }
  EXPECT_TRUE(std::isnan(to_float(e8m0{0xff})));
}

}  // namespace
}  // namespace cermet::format
