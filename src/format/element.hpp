// Reading and writing one element of any type as a double: for references and conversions, not for inner loops of
// kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "format/fp8_variants.hpp"
#include "format/half.hpp"

namespace cermet::format {

/// Element `index` of an array of `dtype`.
inline double load_element(const void* data, DType dtype, std::int64_t index) {
  const auto read = [&](auto zero) {
    std::memcpy(&zero, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof zero), sizeof zero);
    return zero;
  };
  switch (dtype) {
    case DType::boolean: return read(std::uint8_t{}) != 0;
    case DType::u8: return read(std::uint8_t{});
    case DType::i8: return read(std::int8_t{});
    case DType::f8_e4m3: return to_float(read(e4m3{}));
    case DType::f8_e5m2: return to_float(read(e5m2{}));
    case DType::f8_e4m3fnuz: return to_float(read(e4m3fnuz{}));
    case DType::f8_e5m2fnuz: return to_float(read(e5m2fnuz{}));
    case DType::f8_e8m0: return to_float(read(e8m0{}));
    case DType::u16: return read(std::uint16_t{});
    case DType::i16: return read(std::int16_t{});
    case DType::f16: return to_float(read(f16{}));
    case DType::bf16: return to_float(read(bf16{}));
    case DType::u32: return read(std::uint32_t{});
    case DType::i32: return read(std::int32_t{});
    case DType::f32: return read(float{});
    case DType::u64: return static_cast<double>(read(std::uint64_t{}));
    case DType::i64: return static_cast<double>(read(std::int64_t{}));
    case DType::f64: return read(double{});
  }
  return 0;
}

/// Rounds half to even and clamps to the type's range; NaN becomes 0, which only integer outputs of references ever
/// see.
template <class T>
T saturate(double value) {
  const double low = static_cast<double>(std::numeric_limits<T>::min()),
               high = static_cast<double>(std::numeric_limits<T>::max());
  const double rounded = std::nearbyint(value);
  if (!(rounded > low)) return std::isnan(rounded) ? T{0} : std::numeric_limits<T>::min();
  if (rounded >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(rounded);
}

/// The float next to `value` towards zero with its last bit set, or `value` where it is a float: rounding it once more,
/// to a format of at most 22 bits of precision, gives what one rounding of `value` would ("round to odd": Boldo and
/// Melquiond, 2008).
template <class Wide>
float round_to_odd(Wide value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<Wide>(nearest) == value || value != value) return nearest;  // NOLINT(misc-redundant-expression): NaN
  cermet_u32 bits = float_bits(nearest);
  const bool too_large = value > 0 ? static_cast<Wide>(nearest) > value : static_cast<Wide>(nearest) < value;
  if (too_large) --bits;  // towards zero, whatever the sign
  return float_from_bits(bits | 1u);
}

/// Writes `value` with one rounding (to nearest even, in e8m0 to the larger of two equally near; integers saturate).
inline void store_element(void* data, DType dtype, std::int64_t index, double value) {
  const auto write = [&](auto element) {
    std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof element), &element, sizeof element);
  };
  switch (dtype) {
    case DType::boolean: return write(static_cast<std::uint8_t>(value != 0));
    case DType::u8: return write(saturate<std::uint8_t>(value));
    case DType::i8: return write(saturate<std::int8_t>(value));
    case DType::f8_e4m3: return write(to_e4m3(round_to_odd(value)));
    case DType::f8_e5m2: return write(to_e5m2(round_to_odd(value)));
    case DType::f8_e4m3fnuz: return write(to_e4m3fnuz(round_to_odd(value)));
    case DType::f8_e5m2fnuz: return write(to_e5m2fnuz(round_to_odd(value)));
    case DType::f8_e8m0: return write(to_e8m0(round_to_odd(value), Rounding::nearest));
    case DType::u16: return write(saturate<std::uint16_t>(value));
    case DType::i16: return write(saturate<std::int16_t>(value));
    case DType::f16: return write(to_f16(round_to_odd(value)));
    case DType::bf16: return write(to_bf16(round_to_odd(value)));
    case DType::u32: return write(saturate<std::uint32_t>(value));
    case DType::i32: return write(saturate<std::int32_t>(value));
    case DType::f32: return write(static_cast<float>(value));
    case DType::u64: return write(saturate<std::uint64_t>(value));
    case DType::i64: return write(saturate<std::int64_t>(value));
    case DType::f64: return write(value);
  }
}

/// The value as it reads back after being stored as `dtype`.
inline double rounded_to(DType dtype, double value) {
  std::uint64_t bits = 0;
  store_element(&bits, dtype, 0, value);
  return load_element(&bits, dtype, 0);
}

}  // namespace cermet::format
