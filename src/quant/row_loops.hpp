// Inner loops of the quantizer over one row, compiled for several instruction sets; every one gives the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "quant/quantization_grid.hpp"

namespace cermet::row_loops {

/// sum over k of importance[k] * (row[k] - scale * q(row[k] / scale))^2 for each of `scales`, all positive. A null
/// importance counts as ones.
void quantization_errors(const QuantizationGrid& grid, std::span<const float> row, const float* importance,
                         std::span<const float> scales, std::span<double> errors);

/// A row quantized to i8 or f8_e4m3, as float32 values: q(row[k] / scale). `scale` is positive.
void encode(const QuantizationGrid& grid, std::span<const float> row, float scale, float* quantized);

/// Largest absolute value, as the bits of a float: above those of infinity where the row has a NaN.
std::uint32_t largest_bits(std::span<const float> row);

/// For columns [begin, end) of a row: keeps the largest bits of absolute values and sums of squares, and counts
/// absolute values in bins: bits >> 17.
void observe(const float* row, std::int64_t begin, std::int64_t end, std::uint32_t* largest, float* squares,
             std::uint64_t* bins);

/// sum of (expected[i] - found[i])^2 and of expected[i]^2.
struct Distance {
  double error = 0, reference = 0;
};
Distance distance(std::span<const float> expected, const float* found);

}  // namespace cermet::row_loops
