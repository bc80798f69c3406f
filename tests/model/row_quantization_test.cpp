#include "model/row_quantization.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "format/element.hpp"

namespace cermet {
namespace {

TEST(WeightValues, CodesAreTheNearestOfAbsmaxOverTheLargestCode) {
  for (const DType type : {DType::i8, DType::f8_e4m3}) {
    std::vector<float> row;
    for (int i = 0; i < 301; ++i) row.push_back(std::sin(static_cast<float>(i * i)) * 0.03f);
    row[7] = -0.25f;
    std::vector<std::byte> codes(row.size());
    const float scale = quantize_row(row, type, codes.data());
    EXPECT_EQ(scale, 0.25f / (type == DType::i8 ? 127.0f : 448.0f));
    std::vector<float> back(row.size());
    dequantize_row(type, codes, scale, DType::f32, reinterpret_cast<std::byte*>(back.data()));
    std::vector<std::byte> expected(8);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const float scaled = row[i] / scale;
      format::store_element(expected.data(), type, 0, static_cast<double>(scaled));
      EXPECT_EQ(codes[i], expected[0]) << i;
      EXPECT_EQ(back[i], static_cast<float>(format::load_element(expected.data(), type, 0)) * scale) << i;
    }
  }
}

TEST(WeightValues, ZerosHaveScaleZeroAndValuesThatAreNotFiniteNone) {
  std::vector<std::byte> codes(3, std::byte{9});
  EXPECT_EQ(quantize_row(std::vector<float>{0, -0.0f, 0}, DType::i8, codes.data()), 0);
  EXPECT_EQ(codes, std::vector<std::byte>(3));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::quiet_NaN()})
    EXPECT_TRUE(std::isnan(quantize_row(std::vector<float>{1, bad, 2}, DType::i8, codes.data())));
  // The smallest floats: the scale itself is rounded so coarsely that quotients leave the range.
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float scale = quantize_row(std::vector<float>{190 * tiny, -190 * tiny, 0}, DType::i8, codes.data());
  EXPECT_EQ(scale, tiny);
  EXPECT_EQ(codes, (std::vector<std::byte>{std::byte{127}, std::byte{0x80}, std::byte{0}}));
}

}  // namespace
}  // namespace cermet
