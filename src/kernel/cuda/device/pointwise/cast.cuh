// cast: any element type to any other. To floating types one rounding to nearest even; from floating types to integers
// rounded, then clamped, NaN to 0; from integers to integers the low bits; to bool whether it is 0.
#pragma once

#include "kernel/cuda/device/pointwise/cast.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet {

CERMET_DEVICE float to_float(f8_e4m3fnuz x) { return to_float(format::e4m3fnuz{x.bits}); }
CERMET_DEVICE float to_float(f8_e5m2fnuz x) { return to_float(format::e5m2fnuz{x.bits}); }
CERMET_DEVICE float to_float(f8_e8m0 x) { return to_float(format::e8m0{x.bits}); }

}  // namespace cermet

namespace cermet::cast {

__host__ __device__ constexpr bool is_floating(DType t) {
  return t == DType::f8_e4m3 || t == DType::f8_e5m2 || t == DType::f8_e4m3fnuz || t == DType::f8_e5m2fnuz ||
         t == DType::f8_e8m0 || t == DType::f16 || t == DType::bf16 || t == DType::f32 || t == DType::f64;
}
__host__ __device__ constexpr bool is_signed(DType t) {
  return t == DType::i8 || t == DType::i16 || t == DType::i32 || t == DType::i64;
}
/// Whether float32 holds every value.
__host__ __device__ constexpr bool fits_float(DType t) {
  return t != DType::i32 && t != DType::u32 && t != DType::i64 && t != DType::u64 && t != DType::f64;
}

/// The float next to a value towards zero, its last bit set where it is inexact: rounded once more, to at most 22 bits,
/// it gives what one rounding would.
CERMET_DEVICE float odd_if(float towards_zero, bool inexact) {
  return __uint_as_float(__float_as_uint(towards_zero) | (inexact ? 1u : 0u));
}
CERMET_DEVICE float to_odd(int64_t x) {
  const float y = __ll2float_rz(x);
  return odd_if(y, __float2ll_rz(y) != x);
}
CERMET_DEVICE float to_odd(uint64_t x) {
  const float y = __ull2float_rz(x);
  return odd_if(y, __float2ull_rz(y) != x);
}
CERMET_DEVICE float to_odd(double x) {
  const float y = __double2float_rz(x);
  return odd_if(y, static_cast<double>(y) != x && x == x);
}

template <DType To, Rounding R>
CERMET_DEVICE Element<To> narrowed(float x) {
  if constexpr (To == DType::f8_e4m3fnuz) return {format::to_e4m3fnuz(x).bits};
  else if constexpr (To == DType::f8_e5m2fnuz) return {format::to_e5m2fnuz(x).bits};
  else if constexpr (To == DType::f8_e8m0) return {format::to_e8m0(x, R).bits};
  else return from_float<Element<To>>(x);
}

template <DType From, DType To, Rounding R>
CERMET_DEVICE Element<To> to_floating(Element<From> x) {
  using T = Element<To>;
  if constexpr (fits_float(From)) {
    const float value = From == DType::boolean ? (to_float(x) != 0 ? 1.0f : 0.0f) : to_float(x);
    return narrowed<To, R>(value);
  } else if constexpr (To == DType::f32 || To == DType::f64) {
    return static_cast<T>(x);
  } else if constexpr (From == DType::f64) {
    return narrowed<To, R>(to_odd(x));
  } else if constexpr (From == DType::u64) {
    return narrowed<To, R>(to_odd(x));
  } else {
    return narrowed<To, R>(to_odd(static_cast<int64_t>(x)));
  }
}

template <DType T>
__host__ __device__ constexpr int64_t least() {
  return is_signed(T) ? static_cast<int64_t>(~0ull << (sizeof(Element<T>) * 8 - 1)) : 0;
}
/// Largest value, as far as int64 holds it.
template <DType T>
__host__ __device__ constexpr int64_t most() {
  constexpr int bits = sizeof(Element<T>) * 8 - (is_signed(T) ? 1 : 0);
  return bits >= 63 ? 0x7fffffffffffffffll : (1ll << bits) - 1;
}

/// An integer below 2^63 into the range of an integer type.
template <DType To>
CERMET_DEVICE Element<To> clamped(int64_t x) {
  return static_cast<Element<To>>(max_of(min_of(x, most<To>()), least<To>()));
}

template <DType From, DType To, Rounding R>
CERMET_DEVICE Element<To> to_integer(Element<From> x) {
  constexpr bool to_zero = R == Rounding::zero;
  if constexpr (From == DType::boolean) {
    return x != 0;
  } else if constexpr (!is_floating(From)) {
    return static_cast<Element<To>>(x);  // the low bits
  } else if constexpr (From == DType::f64) {
    if (x != x) return 0;
    if constexpr (To == DType::u64) return to_zero ? __double2ull_rz(x) : __double2ull_rn(x);
    else return clamped<To>(to_zero ? __double2ll_rz(x) : __double2ll_rn(x));
  } else {
    const float value = to_float(x);
    if (value != value) return 0;
    if constexpr (To == DType::u64) return to_zero ? __float2ull_rz(value) : __float2ull_rn(value);
    else if constexpr (sizeof(Element<To>) < 4 || To == DType::i32)  // int32 saturates like the rest
      return static_cast<Element<To>>(clamped<To>(to_zero ? __float2int_rz(value) : __float2int_rn(value)));
    else return clamped<To>(to_zero ? __float2ll_rz(value) : __float2ll_rn(value));
  }
}

template <DType From, DType To, Rounding R>
CERMET_DEVICE Element<To> convert(Element<From> x) {
  if constexpr (From == To) return x;
  else if constexpr (To == DType::boolean && fits_float(From)) return to_float(x) != 0;
  else if constexpr (To == DType::boolean) return x != 0;
  else if constexpr (is_floating(To)) return to_floating<From, To, R>(x);
  else return to_integer<From, To, R>(x);
}

template <Config C>
struct Task {
  using Params = cast::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using Coord = VectorCoord<C.width, C.tiling>;
    for_tile<C.width, C.tiling>(
        p.shape, item, team, [&](const Coord& coord) { return load_tile<Element<C.x>>(p.x, coord); },
        [&](const Vector<Element<C.x>, C.width>& x, const Coord& coord) {
          Vector<Element<C.y>, C.width> y;
          if constexpr (fits_float(C.x) && C.x != C.y &&
                        (C.y == DType::bf16 || C.y == DType::f16 || C.y == DType::f32) && C.x != DType::boolean) {
            float values[C.width];
            to_floats(x, values);
            y = from_floats<Element<C.y>>(values);
          } else {
#pragma unroll
            for (int k = 0; k < C.width; ++k) y[k] = convert<C.x, C.y, C.rounding>(x[k]);
          }
          store_tile(p.y, coord, y);
        });
  }
};

}  // namespace cermet::cast
