// What a place of scatter or scatter_nd holds while updates meet it: float32 for floating types of up to 32 bits, else
// the number itself.
#pragma once

#include "kernel/cuda/device/movement/combine.hpp"
#include "kernel/cuda/device/reduce/order.cuh"
#include "kernel/cuda/device/reduce/wide.cuh"

namespace cermet::scatter {

template <DType Type, Reduction R>
struct Combine {
  using T = Element<Type>;
  static constexpr int bits = sizeof(T) * 8;
  static constexpr int64_t highest =
      bits == 64 ? 0x7fffffffffffffffLL : (int64_t{1} << (is_signed_integer<T> ? bits - 1 : bits) % 64) - 1;
  static constexpr int64_t lowest = is_signed_integer<T> ? -highest - 1 : 0;

  template <class Real>
  static CERMET_DEVICE Real combined(Real a, Real b) {
    if constexpr (R == Reduction::prod) return a * b;
    if constexpr (R == Reduction::max) return a > b || a != a ? a : b;
    if constexpr (R == Reduction::min) return a < b || a != a ? a : b;
    return a + b;
  }
  /// Clamped to the type after every step.
  static CERMET_DEVICE int64_t combined(int64_t a, int64_t b) {
    if constexpr (R == Reduction::prod) return Wide::product(a, b).clamped(lowest, highest);
    if constexpr (R == Reduction::max) return max_of(a, b);
    if constexpr (R == Reduction::min) return min_of(a, b);
    return (Wide::of(a) + Wide::of(b)).clamped(lowest, highest);
  }
  static CERMET_DEVICE uint64_t combined(uint64_t a, uint64_t b) {
    if constexpr (R == Reduction::prod) return __umul64hi(a, b) != 0 ? ~uint64_t{0} : a * b;
    if constexpr (R == Reduction::max) return max_of(a, b);
    if constexpr (R == Reduction::min) return min_of(a, b);
    return a + b < a ? ~uint64_t{0} : a + b;
  }
  static CERMET_DEVICE auto widened(T x) {
    if constexpr (Type == DType::u64 || Type == DType::f64) return x;
    else if constexpr (is_integral<T>) return static_cast<int64_t>(x);
    else return to_float(x);
  }
  template <class Wider>
  static CERMET_DEVICE T narrowed(Wider x) {
    if constexpr (is_integral<T> || Type == DType::f64) return static_cast<T>(x);
    else return from_float<T>(x);
  }
};

}  // namespace cermet::scatter
