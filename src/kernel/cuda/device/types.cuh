// Element types on the device: storage, conversion to and from float32 (round to nearest even), and vectors of up to 16
// bytes; loops whose counter is a constant.
#pragma once

#include "kernel/cuda/device/integers.hpp"

#if !defined(__CUDA_ARCH__)
#define CERMET_ARCH 0
#else
#define CERMET_ARCH __CUDA_ARCH__
#endif

namespace cermet {

enum class DType : uint8_t {
#define X(enumerator, name, stored_name, bytes, kind) enumerator,
#include "base/dtype.inc"
#undef X
};

/// Unsigned integers of so many bytes.
template <int Bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};
template <int Bytes>
using Unsigned = typename UnsignedOf<Bytes>::type;

struct bf16 {
  uint16_t bits;
};
struct f16 {
  uint16_t bits;
};
struct f8_e4m3 {
  uint8_t bits;
};
struct f8_e5m2 {
  uint8_t bits;
};
struct f8_e4m3fnuz {
  uint8_t bits;
};
struct f8_e5m2fnuz {
  uint8_t bits;
};
struct f8_e8m0 {
  uint8_t bits;
};

namespace stored {  ///< the type that holds an element of each kind of base/dtype.inc, under the enumerator's name
using boolean = uint8_t;
using u8 = uint8_t;
using i8 = int8_t;
using cermet::f8_e4m3;
using cermet::f8_e4m3fnuz;
using cermet::f8_e5m2;
using cermet::f8_e5m2fnuz;
using cermet::f8_e8m0;
using u16 = uint16_t;
using i16 = int16_t;
using cermet::bf16;
using cermet::f16;
using u32 = uint32_t;
using i32 = int32_t;
using f32 = float;
using u64 = uint64_t;
using i64 = int64_t;
using f64 = double;
}  // namespace stored

template <DType>
struct ElementOf;
#define X(enumerator, name, stored_name, bytes, kind) \
  template <>                                         \
  struct ElementOf<DType::enumerator> {               \
    using type = stored::enumerator;                  \
    static_assert(sizeof(type) == bytes);             \
  };
#include "base/dtype.inc"
#undef X
template <DType T>
using Element = typename ElementOf<T>::type;

__host__ __device__ constexpr int64_t div_up(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }
template <class T>
__host__ __device__ constexpr T min_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
__host__ __device__ constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}

CERMET_DEVICE float infinity() { return __int_as_float(0x7f800000); }
CERMET_DEVICE float quiet_nan() { return __int_as_float(0x7fffffff); }

CERMET_DEVICE float to_float(float x) { return x; }
CERMET_DEVICE float to_float(double x) { return static_cast<float>(x); }
CERMET_DEVICE float to_float(bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
CERMET_DEVICE float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
CERMET_DEVICE float to_float(f8_e5m2 x) { return to_float(f16{static_cast<uint16_t>(x.bits << 8)}); }
CERMET_DEVICE float to_float(f8_e4m3 x) {
  // Exponent and mantissa moved into an f16, whose exponent bias is 8 larger; 0x7f is the only NaN.
  const uint32_t magnitude = x.bits & 0x7fu;
  const float y = to_float(f16{static_cast<uint16_t>(magnitude << 7)}) * 256.0f;
  const float value = magnitude == 0x7fu ? quiet_nan() : y;
  return x.bits & 0x80u ? -value : value;
}
template <class Integer>
CERMET_DEVICE float to_float(Integer x) requires(Integer(1) / Integer(2) == Integer(0)) {
  return static_cast<float>(x);
}

template <class T>
struct FromFloat {  ///< integers saturate, rounding half to even; NaN gives 0
  static CERMET_DEVICE T convert(float x) { return static_cast<T>(__float2ll_rn(x)); }
};
template <>
struct FromFloat<int8_t> {
  static CERMET_DEVICE int8_t convert(float x) {
    int y;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x));
    return static_cast<int8_t>(y);
  }
};
template <>
struct FromFloat<int32_t> {
  static CERMET_DEVICE int32_t convert(float x) { return __float2int_rn(x); }
};
template <>
struct FromFloat<double> {
  static CERMET_DEVICE double convert(float x) { return x; }
};
template <>
struct FromFloat<float> {
  static CERMET_DEVICE float convert(float x) { return x; }
};
template <>
struct FromFloat<f16> {
  static CERMET_DEVICE f16 convert(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
};
template <>
struct FromFloat<bf16> {
  static CERMET_DEVICE bf16 convert(float x) {
    bf16 y;
#if CERMET_ARCH >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
    const uint32_t bits = __float_as_uint(x);
    y.bits = x != x ? 0x7fff : static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
    return y;
  }
};

/// |x| encoded as a minifloat of `mantissa` bits whose smallest normal exponent is `min_exponent`; see format/fp8.hpp,
/// whose bits these are.
CERMET_DEVICE uint32_t round_to_minifloat(uint32_t magnitude, int mantissa, int min_exponent) {
  const uint32_t smallest_normal = static_cast<uint32_t>(min_exponent + 127) << 23;
  const uint32_t anchor = static_cast<uint32_t>(min_exponent + 23 - mantissa + 127) << 23;
  if (magnitude < smallest_normal)
    return __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(anchor)) - anchor;
  const int drop = 23 - mantissa;
  const uint32_t rounded = magnitude + (1u << (drop - 1)) - 1u + ((magnitude >> drop) & 1u);
  return (rounded - smallest_normal + (1u << 23)) >> drop;
}

/// Finite values saturate; an infinity becomes NaN in e4m3, which has none, and stays in e5m2.
template <>
struct FromFloat<f8_e4m3> {
  static CERMET_DEVICE f8_e4m3 convert(float x) {
    const uint32_t bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
#if CERMET_ARCH >= 890
    uint16_t pair;  // saturates infinities too
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    const uint32_t code = pair;
#else
    const uint32_t code = sign | min_of(round_to_minifloat(magnitude, 3, -6), 0x7eu);
#endif
    return {static_cast<uint8_t>(magnitude >= 0x7f800000u ? sign | 0x7fu : code)};
  }
};
template <>
struct FromFloat<f8_e5m2> {
  static CERMET_DEVICE f8_e5m2 convert(float x) {
    const uint32_t bits = __float_as_uint(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
#if CERMET_ARCH >= 890
    uint16_t pair;  // saturates infinities too
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    const uint32_t code = pair;
#else
    const uint32_t code = sign | min_of(round_to_minifloat(magnitude, 2, -14), 0x7bu);
#endif
    const uint32_t special = magnitude == 0x7f800000u ? 0x7cu : 0x7fu;
    return {static_cast<uint8_t>(magnitude >= 0x7f800000u ? sign | special : code)};
  }
};

template <class T>
CERMET_DEVICE T from_float(float x) {
  return FromFloat<T>::convert(x);
}

/// Elements that move with one access.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T at[N];
  CERMET_DEVICE T& operator[](int i) { return at[i]; }
  CERMET_DEVICE const T& operator[](int i) const { return at[i]; }
};

/// Elements of T in a 16-byte access.
template <class T>
inline constexpr int per_16_bytes = 16 / static_cast<int>(sizeof(T));

template <class T>
struct IsBf16 {
  static constexpr bool value = false;
};
template <>
struct IsBf16<bf16> {
  static constexpr bool value = true;
};

template <class T>
struct IsF16 {
  static constexpr bool value = false;
};
template <>
struct IsF16<f16> {
  static constexpr bool value = true;
};

/// A vector as 32-bit words.
template <int Count>
struct Words {
  uint32_t at[Count];
};

template <class T, int Width>
CERMET_DEVICE void to_floats(const Vector<T, Width>& raw, float (&v)[Width]) {
  if constexpr (IsBf16<T>::value && Width % 2 == 0) {  // one instruction each
    const auto words = __builtin_bit_cast(Words<Width / 2>, raw);
#pragma unroll
    for (int k = 0; k < Width; k += 2) {
      v[k] = __uint_as_float(words.at[k / 2] << 16);
      v[k + 1] = __uint_as_float(words.at[k / 2] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int k = 0; k < Width; ++k) v[k] = to_float(raw[k]);
  }
}

/// Two neighbours at once: the instruction packs both.
CERMET_DEVICE void from_floats(float low, float high, bf16* to) {
#if CERMET_ARCH >= 800
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  to[0].bits = static_cast<uint16_t>(pair);
  to[1].bits = static_cast<uint16_t>(pair >> 16);
#else
  to[0] = from_float<bf16>(low);
  to[1] = from_float<bf16>(high);
#endif
}
CERMET_DEVICE void from_floats(float low, float high, f16* to) {
#if CERMET_ARCH >= 800
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  to[0].bits = static_cast<uint16_t>(pair);
  to[1].bits = static_cast<uint16_t>(pair >> 16);
#else
  to[0] = from_float<f16>(low);
  to[1] = from_float<f16>(high);
#endif
}
template <class T>
CERMET_DEVICE void from_floats(float low, float high, T* to) {
  to[0] = from_float<T>(low);
  to[1] = from_float<T>(high);
}

template <class T, int Width>
CERMET_DEVICE Vector<T, Width> from_floats(const float (&v)[Width]) {
  Vector<T, Width> result;
  if constexpr (Width == 1) {
    result[0] = from_float<T>(v[0]);
  } else {
#pragma unroll
    for (int k = 0; k < Width; k += 2) from_floats(v[k], v[k + 1], &result[k]);
  }
  return result;
}

/// The first type where Condition holds, otherwise the second.
template <bool Condition, class First, class Second>
struct EitherOf {
  using type = First;
};
template <class First, class Second>
struct EitherOf<false, First, Second> {
  using type = Second;
};
template <bool Condition, class First, class Second>
using Either = typename EitherOf<Condition, First, Second>::type;

/// Loops whose counter is a constant, so that each turn is its own code: a number that a generic lambda takes as a
/// constant; calls body(Constant<0>), body(Constant<1>), ..
template <int I>
struct Constant {};
template <int Count, int I = 0, class Body>
CERMET_DEVICE void for_constants(Body&& body) {
  if constexpr (I < Count) {
    body(Constant<I>{});
    for_constants<Count, I + 1>(body);
  }
}

}  // namespace cermet
