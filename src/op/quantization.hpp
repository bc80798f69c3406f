// What quantizing operators share: element types, the scale of a set of values, and the reference of a quantized row.
// The float32 arithmetic here is the definition: kernels repeat it operation by operation, so that results agree bit
// for bit.
#pragma once

#include <bit>
#include <cmath>
#include <span>

#include "op/schema/infer.hpp"

namespace cermet {

inline constexpr DTypeSet quantized_types{DType::i8, DType::f8_e4m3, DType::f8_e5m2};

/// Which values share a scale.
enum class Granularity : std::uint8_t { tensor, channel, token, group };

/// The attributes, each with the same meaning wherever it appears.
AttributeSpec quantized_type_attribute();  ///< out_dtype: i8, f8_e4m3 or f8_e5m2
AttributeSpec range_attribute();           ///< range: "127" or "127.5", of int8
AttributeSpec group_size_attribute();      ///< group_size
AttributeSpec asymmetric_attribute();      ///< asymmetric
AttributeSpec quantize_mode_attribute();   ///< mode: "div" or "mul"

/// How values are dynamically quantized.
struct QuantizedFormat {
  DType dtype = DType::i8;
  float limit = 127;  ///< absmax / limit is the symmetric scale
  bool asymmetric = false;
  std::int64_t group = 0;     ///< values along a row that share a scale; 0: all of the row
  bool power_of_two = false;  ///< symmetric scales are rounded up to powers of two
  float bound = INFINITY;     ///< symmetric scales are of magnitudes of at most this; known at a launch
};
/// From the attributes out_dtype and, where the operator has them, range, asymmetric, granularity and group_size.
QuantizedFormat quantized_format(const Attributes& attributes);
/// The same for inference: throws Error naming the attribute that does not go with the others.
QuantizedFormat checked_quantized_format(const Problem& problem);
/// Groups in a row of `length` values.
inline std::int64_t groups_in_row(const QuantizedFormat& format, std::int64_t length) {
  return format.group == 0 ? 1 : (length + format.group - 1) / format.group;
}
/// Dimensions of the scales of rows with dimensions `rows`: those without the last, which is replaced by the number of
/// groups where there are groups.
Dims scale_dims(const Problem& problem, std::size_t operand, const QuantizedFormat& format);

/// The least normal power of two that is not below a positive scale; 0, infinity and NaN stay.
inline float power_of_two_above(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  if (bits == 0 || bits >= 0x7f800000u || (bits >= 0x800000u && (bits & 0x7fffffu) == 0)) return scale;
  return std::bit_cast<float>((bits | 0x7fffffu) + 1);
}

struct QuantizationParams {
  float scale, zero_point;
};
/// Scale and zero point of values in [low, high]; symmetric formats take high = absmax. NaN gives a NaN scale; zeros
/// give scale 0 and zero point 0.
inline QuantizationParams quantization_params(float low, float high, const QuantizedFormat& format) {
  if (!format.asymmetric) {
    const float scale = (high > format.bound ? format.bound : high) / format.limit;
    return {format.power_of_two ? power_of_two_above(scale) : scale, 0};
  }
  const float scale = (high - low) / 255.0f, zero = std::nearbyint(-128.0f - low / scale);
  if (!(scale > 0) || std::isnan(zero)) return {scale, 0};
  return {scale, std::fmin(std::fmax(zero, -128.0f), 127.0f)};
}

/// Reference: the scale of `values`.
QuantizationParams quantization_params_of(std::span<const float> values, const QuantizedFormat& format);
/// Reference: value / scale + zero_point before it is rounded; 0 where the scale is 0.
inline float scaled_value(float value, QuantizationParams scale) {
  return scale.scale == 0 ? 0 : value / scale.scale + scale.zero_point;
}

/// Results of a dynamic quantization: quantized values, scales and zero points (not present for symmetric formats).
struct QuantizedViews {
  TensorView quantized, scale, zero_point;
};
/// Reference: quantizes row `row` from its values.
void quantize_row(std::span<const float> values, std::int64_t row, const QuantizedFormat& format,
                  const QuantizedViews& out);
/// Reference of static quantization: x / scale + offset or x * scale + offset, before it is rounded.
inline float static_value(float x, float scale, std::optional<float> offset, bool divide) {
  const float scaled = divide ? x / scale : x * scale;
  return offset ? scaled + *offset : scaled;
}

/// A value of which an fp8 format makes, beyond its largest, what it has there: NaN in e4m3, infinity in e5m2.
inline float unsaturated(float value, DType dtype) {
  if (dtype == DType::f8_e4m3)
    return std::abs(value) > 464 ? NAN : value;  // halfway to the next value there would be; 448 is even
  return std::abs(value) >= 61440 ? std::copysign(INFINITY, value) : value;
}

}  // namespace cermet
