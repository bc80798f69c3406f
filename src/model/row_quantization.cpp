#include "model/row_quantization.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "format/fp8.hpp"
#include "model/convert_elements.hpp"

namespace cermet {
namespace {

constexpr std::uint32_t infinity_bits = 0x7f800000;

/// Magnitudes of floats compare as their bits do, which vectorises where comparing floats does not; infinity and NaN
/// are the largest.
std::uint32_t largest_magnitude_bits(std::span<const float> row) {
  std::int32_t largest = 0;
  for (const float x : row)
    largest = std::max(largest, static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x) & 0x7fffffffu));
  return static_cast<std::uint32_t>(largest);
}

/// Nearest integer, half to even, for magnitudes below 2^22: the addition leaves no bits for fractions.
float nearest(float x) {
  constexpr float anchor = 12582912.0f;  // 1.5 * 2^23
  return (x + anchor) - anchor;
}

}  // namespace

float quantize_row(std::span<const float> row, DType quantized_type, std::byte* quantized) {
  const std::uint32_t bits = largest_magnitude_bits(row);
  if (bits >= infinity_bits) return std::numeric_limits<float>::quiet_NaN();
  const float scale = std::bit_cast<float>(bits) / (quantized_type == DType::i8 ? 127.0f : format::e4m3_max);
  if (!(scale > 0)) return std::fill_n(quantized, row.size(), std::byte{0}), 0.0f;
  if (quantized_type == DType::i8) {
    // A scale among the smallest floats is rounded so coarsely that quotients may leave the quantized range.
    for (std::size_t i = 0; i < row.size(); ++i)
      quantized[i] = static_cast<std::byte>(
          static_cast<std::int8_t>(nearest(std::min(std::max(row[i] / scale, -128.0f), 127.0f))));
  } else {
    for (std::size_t i = 0; i < row.size(); ++i)
      quantized[i] = static_cast<std::byte>(format::to_e4m3(row[i] / scale).bits);
  }
  return scale;
}

void round_row(std::span<const float> row, DType quantized_type, float scale, std::byte* quantized) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float value = scale > 0 ? row[i] / scale : 0.0f;
    if (quantized_type == DType::i8)
      quantized[i] =
          static_cast<std::byte>(static_cast<std::int8_t>(nearest(std::min(std::max(value, -128.0f), 127.0f))));
    else
      quantized[i] =
          static_cast<std::byte>(format::to_e4m3(std::min(std::max(value, -format::e4m3_max), format::e4m3_max)).bits);
  }
}

void dequantize_row(DType quantized_type, std::span<const std::byte> quantized, float scale, DType to,
                    std::byte* destination) {
  std::vector<float> values(quantized.size());
  for (std::size_t i = 0; i < quantized.size(); ++i)
    values[i] = quantized_type == DType::i8
                    ? static_cast<float>(static_cast<std::int8_t>(quantized[i])) * scale
                    : format::to_float(format::e4m3{static_cast<std::uint8_t>(quantized[i])}) * scale;
  convert_elements(DType::f32, reinterpret_cast<const std::byte*>(values.data()), to, destination,
                   static_cast<std::int64_t>(quantized.size()));
}

}  // namespace cermet
