// Steps of tile programs that quantize by a scale that all elements share: the bits of a division.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/tile_steps.hpp"

namespace cermet {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Numbers on both sides of where codes change, and those that no code stands for.
std::vector<float> around_edges(float scale) {
  std::vector<float> x{
      0.0f, -0.0f, infinity, -infinity, std::nanf("7"), 1e-45f, -1e-40f, std::numeric_limits<float>::max(), -1e30f};
  for (int edge = -300; edge <= 300; ++edge) {
    float at = (static_cast<float>(edge) + 0.5f) * scale;
    for (int step = 0; step < 3; ++step) at = std::nextafter(at, -infinity);
    for (int step = 0; step < 7; ++step, at = std::nextafter(at, infinity)) x.push_back(at);
  }
  return x;
}

int code_of(float x, float scale, int zero_point) {
  if (std::isnan(x)) return 0;
  const float quotient = x / scale;
  return static_cast<int>(std::clamp(std::nearbyint(quotient) + static_cast<float>(zero_point), -128.0f, 127.0f));
}

/// A number as an operand.
struct Number {
  alignas(64) float values[cpu::TileOperand::repeated];
  explicit Number(float value) { std::fill(std::begin(values), std::end(values), value); }
  operator cpu::TileOperand() const { return {values, 0, 0}; }  // NOLINT(google-explicit-constructor): reads like one
};

void expect_codes(float scale, int zero_point) {
  const std::vector<float> x = around_edges(scale), none(x.size(), -0.0f);
  const std::size_t count = x.size();
  const Number by(scale), zero(static_cast<float>(zero_point)), factor(0.5f);
  std::vector<std::int8_t> codes(count);
  const TensorView y(codes.data(), DType::i8, {1, static_cast<std::int64_t>(count)});
  const cpu::TileOperand values{x.data(), count, 1}, nothing{none.data(), count, 1};
  for (const bool sum : {false, true}) {
    const cpu::TileOperand of_one[] = {values, by, zero}, of_sum[] = {values, nothing, by, zero};
    std::ranges::fill(codes, std::int8_t{99});
    const cpu::TileSteps steps = cpu::tile_steps();
    (sum ? steps.store_quantized_sum : steps.store_quantized)(sum ? of_sum : of_one, Rows(y),
                                                              {.rows = 1, .columns = static_cast<std::int64_t>(count)});
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(codes[i], code_of(x[i], scale, zero_point)) << x[i] << " / " << scale << " + " << zero_point;
    for (const float shift : {static_cast<float>(zero_point), 0.0f, 2.5f}) {
      const Number before(shift);
      const cpu::TileOperand again[] = {values, by, zero, before, factor},
                             again_sum[] = {values, nothing, by, zero, before, factor};
      std::vector<float> made(count, 99.0f);
      steps.requantize[sum][false](sum ? again_sum : again, {made.data(), count, 1, count}, nullptr);
      for (std::size_t i = 0; i < count; ++i) {
        const float expected = (static_cast<float>(code_of(x[i], scale, zero_point)) - shift) * 0.5f;
        ASSERT_EQ(std::memcmp(&made[i], &expected, sizeof expected), 0)
            << x[i] << " / " << scale << " + " << zero_point << ": " << made[i];
      }
    }
  }
}

TEST(SharedScale, HasTheBitsOfADivision) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> mantissa(1, 2);
  for (const cpu::Isa isa : cpu::supported_isas()) {
    cpu::force_isa(isa);
    for (int i = 0; i < 8; ++i)
      expect_codes(std::ldexp(mantissa(random), static_cast<int>(random() % 40) - 30),
                   static_cast<int>(random() % 256) - 128);
    for (const float scale : {1.0f, 1.99999988f, 0x1p-70f, 0x1p80f})
      expect_codes(scale, 3);  // the last two are left to divisions
  }
  cpu::force_isa(cpu::supported_isas().back());
}

}  // namespace
}  // namespace cermet
