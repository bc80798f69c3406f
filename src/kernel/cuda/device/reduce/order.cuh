// Unsigned keys that order like the elements of a type: 32 bits where they suffice. -0 equals +0, NaN is above
// everything.
#pragma once

#include "kernel/cuda/device/types.cuh"
#include "op/float_order.hpp"

namespace cermet {

/// Whether elements of the type are integers.
template <class T>
inline constexpr bool is_integral = false;
template <>
inline constexpr bool is_integral<uint8_t> = true;
template <>
inline constexpr bool is_integral<int8_t> = true;
template <>
inline constexpr bool is_integral<uint16_t> = true;
template <>
inline constexpr bool is_integral<int16_t> = true;
template <>
inline constexpr bool is_integral<uint32_t> = true;
template <>
inline constexpr bool is_integral<int32_t> = true;
template <>
inline constexpr bool is_integral<uint64_t> = true;
template <>
inline constexpr bool is_integral<int64_t> = true;

template <class T>
inline constexpr bool is_signed_integer = false;
template <class T>
requires is_integral<T>
inline constexpr bool is_signed_integer<T> = static_cast<T>(-1) < static_cast<T>(0);

template <class T>
struct OrderOf {  ///< floating types of up to 32 bits
  using Key = uint32_t;
  static CERMET_DEVICE Key key(T x) { return order_key(to_float(x)); }
};
template <class T>
requires(is_integral<T> && sizeof(T) < 8) struct OrderOf<T> {
  using Key = uint32_t;
  static CERMET_DEVICE Key key(T x) {
    if constexpr (is_signed_integer<T>) return static_cast<uint32_t>(static_cast<int32_t>(x)) ^ 0x80000000u;
    else return static_cast<uint32_t>(x);
  }
};
template <class T>
requires(is_integral<T> && sizeof(T) == 8) struct OrderOf<T> {
  using Key = uint64_t;
  static CERMET_DEVICE Key key(T x) {
    if constexpr (is_signed_integer<T>) return static_cast<uint64_t>(x) ^ 0x8000000000000000ull;
    else return x;
  }
};
template <>
struct OrderOf<double> {
  using Key = uint64_t;
  static CERMET_DEVICE Key key(double x) {
    if (x != x) return ~Key{0};
    const auto bits = static_cast<uint64_t>(__double_as_longlong(x + 0.0));  // -0 becomes +0
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
  }
};

}  // namespace cermet
