#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quant/row_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <array>
#include <cmath>
#include <numeric>

#include "quant/row_loops.hpp"

// Plain loops over a fixed number of lanes: compilers turn them into whatever vectors a target has, and the order of
// every sum is the same for all.
HWY_BEFORE_NAMESPACE();
namespace cermet::row_loops::HWY_NAMESPACE {

constexpr std::size_t lanes = 32;
using Lanes = std::array<float, lanes>;

/// Long sums leave float32 every so many elements.
constexpr std::size_t block = 1024;

inline double total(const Lanes& sums) { return std::accumulate(sums.begin(), sums.end(), 0.0); }

template <bool fp8>
inline float code_of(float x, float low, float high) {
  if constexpr (fp8) return round_to_e4m3(x);
  return round_to_integer(std::min(std::max(x, low), high));
}

template <bool fp8, bool weighted>
double quantization_error(const QuantizationGrid& grid, std::span<const float> row, const float* importance,
                          float scale) {
  const float inverse = 1 / scale, low = grid.low, high = grid.high;
  const auto term = [&](std::size_t k) HWY_ATTR {
    const float difference = row[k] - scale * code_of<fp8>(row[k] * inverse, low, high);
    const float square = difference * difference;
    return weighted ? square * importance[k] : square;
  };
  double sum = 0;
  for (std::size_t begin = 0; begin < row.size(); begin += block) {
    const std::size_t end = std::min(begin + block, row.size());
    Lanes sums{};
    std::size_t k = begin;
    for (; k + lanes <= end; k += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += term(k + lane);
    for (std::size_t lane = 0; k < end; ++k, ++lane) sums[lane] += term(k);
    sum += total(sums);
  }
  return sum;
}

void quantization_errors(const QuantizationGrid& grid, std::span<const float> row, const float* importance,
                         std::span<const float> scales, std::span<double> errors) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (grid.is_fp8())
      errors[i] = importance ? quantization_error<true, true>(grid, row, importance, scales[i])
                             : quantization_error<true, false>(grid, row, nullptr, scales[i]);
    else
      errors[i] = importance ? quantization_error<false, true>(grid, row, importance, scales[i])
                             : quantization_error<false, false>(grid, row, nullptr, scales[i]);
  }
}

template <bool fp8>
void encode_as(const QuantizationGrid& grid, std::span<const float> row, float scale, float* quantized) {
  const float low = grid.low, high = grid.high;
  for (std::size_t k = 0; k < row.size(); ++k) quantized[k] = code_of<fp8>(row[k] / scale, low, high);
}

void encode(const QuantizationGrid& grid, std::span<const float> row, float scale, float* quantized) {
  if (grid.is_fp8()) encode_as<true>(grid, row, scale, quantized);
  else encode_as<false>(grid, row, scale, quantized);
}

std::uint32_t largest_bits(std::span<const float> row) {
  std::uint32_t largest = 0;
  for (const float x : row) largest = std::max(largest, format::float_bits(x) & 0x7fffffffu);
  return largest;
}

void observe(const float* row, std::int64_t begin, std::int64_t end, std::uint32_t* largest, float* squares,
             std::uint64_t* bins) {
  for (std::int64_t c = begin; c < end; ++c) {
    largest[c] = std::max(largest[c], format::float_bits(row[c]) & 0x7fffffffu);
    squares[c] += row[c] * row[c];
  }
  for (std::int64_t c = begin; c < end; ++c) ++bins[(format::float_bits(row[c]) & 0x7fffffffu) >> 17];
}

Distance distance(std::span<const float> expected, const float* found) {
  Distance sum;
  for (std::size_t begin = 0; begin < expected.size(); begin += block) {
    const std::size_t end = std::min(begin + block, expected.size());
    Lanes errors{}, references{};
    const auto add = [&](std::size_t i, std::size_t lane) HWY_ATTR {
      const float difference = expected[i] - found[i];
      errors[lane] += difference * difference;
      references[lane] += expected[i] * expected[i];
    };
    std::size_t i = begin;
    for (; i + lanes <= end; i += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) add(i + lane, lane);
    for (std::size_t lane = 0; i < end; ++i, ++lane) add(i, lane);
    sum.error += total(errors);
    sum.reference += total(references);
  }
  return sum;
}

}  // namespace cermet::row_loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::row_loops {

HWY_EXPORT(quantization_errors);
HWY_EXPORT(encode);
HWY_EXPORT(largest_bits);
HWY_EXPORT(observe);
HWY_EXPORT(distance);

void quantization_errors(const QuantizationGrid& grid, std::span<const float> row, const float* importance,
                         std::span<const float> scales, std::span<double> errors) {
  HWY_DYNAMIC_DISPATCH(quantization_errors)(grid, row, importance, scales, errors);
}
void encode(const QuantizationGrid& grid, std::span<const float> row, float scale, float* quantized) {
  HWY_DYNAMIC_DISPATCH(encode)(grid, row, scale, quantized);
}
std::uint32_t largest_bits(std::span<const float> row) { return HWY_DYNAMIC_DISPATCH(largest_bits)(row); }
void observe(const float* row, std::int64_t begin, std::int64_t end, std::uint32_t* largest, float* squares,
             std::uint64_t* bins) {
  HWY_DYNAMIC_DISPATCH(observe)(row, begin, end, largest, squares, bins);
}
Distance distance(std::span<const float> expected, const float* found) {
  return HWY_DYNAMIC_DISPATCH(distance)(expected, found);
}

}  // namespace cermet::row_loops
#endif
