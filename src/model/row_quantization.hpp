// Quantization and dequantization of rows of weights, on their way from a file into a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace cermet {

/// Quantizes a row with one scale, to i8 (absmax / 127) or f8_e4m3 (absmax / 448), rounded to nearest even. Returns the
/// scale, 0 for zeros; NaN where a value is not finite, and then writes nothing.
float quantize_row(std::span<const float> row, DType quantized_type, std::byte* quantized);

/// Quantizes a row with a scale that is given: to the nearest even, values beyond the type's range to its ends.
void round_row(std::span<const float> row, DType quantized_type, float scale, std::byte* quantized);

/// Dequantizes i8 or f8_e4m3 values with one scale: products in float32, rounded once to `to`.
void dequantize_row(DType quantized_type, std::span<const std::byte> quantized, float scale, DType to,
                    std::byte* destination);

}  // namespace cermet
