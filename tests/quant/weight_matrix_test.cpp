#include "quant/weight_matrix.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "format/element.hpp"
#include "quant/row_loops.hpp"
#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

/// Rows of normal values with a few large ones.
OwnedTensor make_weight(DType dtype, std::int64_t rows, std::int64_t columns, double deviation = 0.02) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  OwnedTensor tensor(dtype, {rows, columns});
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const double heavy = random() % 97 == 0 ? 6 : 1;
    format::store_element(tensor.memory.data(), dtype, i, normal(random) * deviation * heavy);
  }
  return tensor;
}

double element(const TensorView& t, std::int64_t i) { return format::load_element(t.data, t.dtype, i); }

/// sum over k of importance * (w - scale * q)^2 of one row, in double.
double row_error(const TensorView& w, const QuantizedWeight& q, std::int64_t row,
                 const std::vector<float>& importance) {
  double error = 0;
  const std::int64_t columns = w.shape[1];
  for (std::int64_t k = 0; k < columns; ++k) {
    const double difference =
        element(w, row * columns + k) -
        static_cast<double>(q.scales[static_cast<std::size_t>(row)]) * element(q.quantized.view, row * columns + k);
    error += static_cast<double>(importance[static_cast<std::size_t>(k)]) * difference * difference;
  }
  return error;
}

std::vector<float> uneven_importance(std::int64_t columns) {
  std::vector<float> importance(static_cast<std::size_t>(columns));
  for (std::size_t k = 0; k < importance.size(); ++k) importance[k] = k % 5 == 0 ? 4.0f : 0.25f;
  return importance;
}

TEST(QuantizeWeight, TheSearchIsNeverWorseThanTheLargestValue) {
  ThreadPool pool(2);
  for (const QuantizationGrid& grid :
       {QuantizationGrid::int8(127.5), QuantizationGrid::int8(127), QuantizationGrid::fp8()}) {
    const OwnedTensor w = make_weight(DType::bf16, 40, 300);
    const std::vector<float> importance = uneven_importance(300);
    const QuantizedWeight searched = quantize_weight(w.view, {}, grid, DType::bf16, importance, pool);
    const QuantizedWeight plain = quantize_weight(w.view, {}, grid, DType::bf16, {}, pool);
    double sum = 0, plain_sum = 0;
    for (std::int64_t r = 0; r < 40; ++r) {
      // The search measures in float32 with a reciprocal of the scale: ties may fall to either side.
      EXPECT_LE(row_error(w.view, searched, r, importance), row_error(w.view, plain, r, importance) * 1.0001) << r;
      sum += row_error(w.view, searched, r, importance);
      plain_sum += row_error(w.view, plain, r, importance);
    }
    EXPECT_LT(sum, plain_sum);
    EXPECT_EQ(plain.clip_ratio, 1);
    EXPECT_LT(searched.clip_ratio, 1);
  }
}

TEST(QuantizeWeight, CodesAreMadeWithTheScaleAsItIsStored) {
  ThreadPool pool(2);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const OwnedTensor w = make_weight(dtype, 16, 128);
    for (const double range : {127.0, 127.5}) {
      const QuantizationGrid grid = QuantizationGrid::int8(range);
      const QuantizedWeight q = quantize_weight(w.view, {}, grid, dtype, {}, pool);
      for (std::int64_t r = 0; r < 16; ++r) {
        const double scale = static_cast<double>(q.scales[static_cast<std::size_t>(r)]);
        EXPECT_EQ(format::rounded_to(dtype, scale), scale);
        for (std::int64_t k = 0; k < 128; ++k) {
          const double code = element(q.quantized.view, r * 128 + k), value = element(w.view, r * 128 + k);
          EXPECT_GE(code, static_cast<double>(grid.low));
          if (code <= static_cast<double>(grid.low) || code >= 127) continue;
          EXPECT_LE(std::abs(value - scale * code), scale * 0.50001) << r << ", " << k;
        }
      }
    }
  }
}

TEST(QuantizeWeight, FactorsMultiplyColumnsAndRows) {
  ThreadPool pool(1);
  const OwnedTensor w = make_weight(DType::f32, 8, 64);
  std::vector<float> columns(64), rows(8);
  for (std::size_t k = 0; k < 64; ++k) columns[k] = std::exp2(static_cast<float>(k % 7) - 3);
  for (std::size_t r = 0; r < 8; ++r) rows[r] = std::exp2(static_cast<float>(r) - 4);
  const OwnedTensor scaled = scaled_tensor(w.view, {columns, rows}, pool);
  for (std::int64_t i = 0; i < 8 * 64; ++i)
    EXPECT_EQ(element(scaled.view, i), element(w.view, i) *
                                           static_cast<double>(columns[static_cast<std::size_t>(i % 64)]) *
                                           static_cast<double>(rows[static_cast<std::size_t>(i / 64)]));
  const std::vector<float> importance = uneven_importance(64);
  const QuantizedWeight a =
      quantize_weight(w.view, {columns, rows}, QuantizationGrid::int8(127.5), DType::bf16, importance, pool);
  const QuantizedWeight b =
      quantize_weight(scaled.view, {}, QuantizationGrid::int8(127.5), DType::bf16, importance, pool);
  EXPECT_EQ(a.scales, b.scales);
  EXPECT_EQ(std::memcmp(a.quantized.memory.data(), b.quantized.memory.data(), 8 * 64), 0);
}

TEST(QuantizeWeight, ZerosAndTinyValues) {
  ThreadPool pool(1);
  OwnedTensor w(DType::f16, {2, 4});
  std::memset(w.memory.data(), 0, 16);
  format::store_element(w.memory.data(), DType::f16, 5, 0x1p-24);  // the smallest of all: its scale would be 0
  const QuantizedWeight q =
      quantize_weight(w.view, {}, QuantizationGrid::int8(127.5), DType::f16, std::vector<float>(4, 1.0f), pool);
  EXPECT_EQ(q.scales[0], 1);
  EXPECT_EQ(static_cast<double>(q.scales[1]), 0x1p-24);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(element(q.quantized.view, i), i == 5 ? 1 : 0);
  test::expect_error(Status::unsupported, {"scale", "f16", "1000000"}, [] { stored_scale(1e6, DType::f16); });
}

TEST(RowLoops, RoundingToE4m3IsThatOfTheFormat) {
  for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 977) {
    const float x = format::float_from_bits(bits);
    ASSERT_EQ(round_to_e4m3(x), format::to_float(format::to_e4m3(x))) << x;
    ASSERT_EQ(round_to_e4m3(-x), format::to_float(format::to_e4m3(-x))) << x;
  }
}

TEST(RowLoops, OddLengths) {
  const OwnedTensor w = make_weight(DType::f32, 1, 2000, 1);
  for (const std::size_t length : {0u, 1u, 31u, 33u, 1023u, 1025u, 2000u}) {
    const std::span<const float> row(w.view.as<float>(), length);
    const float scale = 0.01f;
    std::vector<float> codes(length);
    row_loops::encode(QuantizationGrid::int8(127.5), row, scale, codes.data());
    double expected = 0, squares = 0;
    for (std::size_t k = 0; k < length; ++k) {
      EXPECT_EQ(codes[k], std::nearbyint(std::clamp(row[k] / scale, -128.0f, 127.0f)));
      const double difference = static_cast<double>(row[k] - scale * codes[k]);
      expected += difference * difference;
      squares += static_cast<double>(row[k]) * static_cast<double>(row[k]);
    }
    double found = -1;
    row_loops::quantization_errors(QuantizationGrid::int8(127.5), row, nullptr, {&scale, 1}, {&found, 1});
    EXPECT_NEAR(found, expected, expected * 1e-4 + 1e-12) << length;
    for (float& code : codes) code *= scale;
    const row_loops::Distance distance = row_loops::distance(row, codes.data());
    EXPECT_NEAR(distance.error, expected, expected * 1e-4 + 1e-12) << length;
    EXPECT_NEAR(distance.reference, squares, squares * 1e-5) << length;
  }
}

}  // namespace
}  // namespace cermet
