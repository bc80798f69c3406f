// Quantization: the scale of a range and the quantized values, operation by operation as op/quantization.hpp defines
// them.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

struct QuantizedFormat {
  DType dtype = DType::i8;
  bool wide = false;  ///< int8 scale is absmax / 127.5
  bool asymmetric = false;
  int group = 0;              ///< values along a row that share a scale; 0: all of it
  bool power_of_two = false;  ///< scales are rounded up to powers of two
  bool bounded = false;       ///< scales are made for magnitudes up to a bound only: larger values saturate
};

struct QuantizationParams {
  float scale, zero_point;
};

/// What the scale comes from: the largest value and the largest negated one, at least 0. Both are max |v| where the
/// format is symmetric. NaN stays.
struct ValueRange {
  float high = 0, low = 0;
};

/// The larger; NaN where either is.
CERMET_DEVICE float max_or_nan(float a, float b) {
#if CERMET_ARCH >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  return a != a || a > b ? a : b;
#endif
}

template <QuantizedFormat F>
CERMET_DEVICE void widen(ValueRange& range, float v) {
  range.high = max_or_nan(range.high, F.asymmetric ? v : fabsf(v));
  if constexpr (F.asymmetric) range.low = max_or_nan(range.low, -v);
}

/// A branch that the compiler should lay out of the way.
CERMET_DEVICE bool unlikely(bool condition) { return __builtin_expect(condition, false); }

/// 1 / x, correctly rounded for |x| in [2^-100, 2^100]: the hardware's approximation and a Newton step.
CERMET_DEVICE float rounded_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return fmaf(y, -fmaf(x, y, -1.0f), y);
}

/// x / divisor, correctly rounded: see Quantizer::quotient; where the quotient would be near the ends of float32, the
/// slow way.
CERMET_DEVICE float quotient_by_constant(float x, float divisor) {
  if (unlikely(!(x >= 0x1p-80f && x <= 0x1p80f))) return __fdiv_rn(x, divisor);
  const float reciprocal = 1.0f / divisor, residue = fmaf(-divisor, reciprocal, 1.0f) * reciprocal;
  const float q = fmaf(x, reciprocal, x * residue);
  return fmaf(fmaf(-q, divisor, x), reciprocal, q);
}

/// The least normal power of two that is not below a positive scale; 0, infinity and NaN stay.
CERMET_DEVICE float power_of_two_above(float scale) {
  const uint32_t bits = __float_as_uint(scale);
  if (bits == 0 || bits >= 0x7f800000u || (bits >= 0x800000u && (bits & 0x7fffffu) == 0)) return scale;
  return __uint_as_float((bits | 0x7fffffu) + 1);
}

template <QuantizedFormat F>
CERMET_DEVICE QuantizationParams quantization_params(ValueRange range) {
  if constexpr (!F.asymmetric) {
    constexpr float limit = F.dtype == DType::f8_e4m3   ? 448.0f
                            : F.dtype == DType::f8_e5m2 ? 57344.0f
                            : F.wide                    ? 127.5f
                                                        : 127.0f;
    const float scale = quotient_by_constant(range.high, limit);
    return {F.power_of_two ? power_of_two_above(scale) : scale, 0};
  } else {
    const float scale = (range.high + range.low) / 255.0f, zero = rintf(-128.0f + range.low / scale);
    if (!(scale > 0) || zero != zero) return {scale, 0};
    return {scale, fminf(fmaxf(zero, -128.0f), 127.0f)};
  }
}

/// Quantizes values with one scale: value / scale + zero_point, correctly rounded at each step, then rounded to the
/// quantized type. Not Exact: the quotient may be off by a unit in the last place.
template <QuantizedFormat F, bool Exact>
class Quantizer {
 public:
  CERMET_DEVICE explicit Quantizer(QuantizationParams s) : scale_(s.scale), zero_(s.zero_point) {
    // Scales near the ends of float32 are moved to the middle together with the values, which changes no quotient by
    // enough to change a quantized value.
    ordinary_ = scale_ >= 0x1p-60f && scale_ <= 0x1p60f;
    finite_ = scale_ < infinity();
    if (unlikely(!ordinary_)) factor_ = scale_ < 1 ? 0x1p100f : 0x1p-100f;
    scale_ *= factor_;
    reciprocal_ = rounded_reciprocal(scale_);
    if (scale_ == 0 ||
        !(scale_ < infinity())) {  // zeros quantize to 0; a finite value over an infinity is 0, and an infinite one NaN
      reciprocal_ = scale_ != scale_ && !integers ? scale_ : 0;
      scale_ = 1;
    }
    if constexpr (Exact) residue_ = fmaf(-scale_, reciprocal_, 1.0f) * reciprocal_;
  }

  /// Whether the scale is far enough from the ends of float32 that values may be used as they are.
  CERMET_DEVICE bool ordinary() const { return ordinary_; }

  template <int Width>
  CERMET_DEVICE Vector<Element<F.dtype>, Width> quantize(const float (&values)[Width]) const {
    return unlikely(!ordinary_) ? quantize_scaled<false>(values) : quantize_scaled<true>(values);
  }
  /// Lets quantize_scaled<true> take the values whatever the scale is: the shorter code where both would stand side by
  /// side.
  template <int Width>
  CERMET_DEVICE void make_ordinary(float (&values)[Width]) const {
    if (unlikely(!ordinary_)) move(values);
  }
  /// Ordinary: what ordinary() says.
  template <bool Ordinary, int Width>
  CERMET_DEVICE Vector<Element<F.dtype>, Width> quantize_scaled(const float (&values)[Width]) const {
    float q[Width];
#pragma unroll
    for (int k = 0; k < Width; ++k) q[k] = values[k];
    if constexpr (!Ordinary) move(q);
    if constexpr (integers && !Exact && !F.wide) {
#pragma unroll
      for (int k = 0; k < Width; ++k) q[k] = fmaf(q[k], reciprocal_, round_shift);
      return bytes(q);
    } else if constexpr (integers) {
#pragma unroll
      for (int k = 0; k < Width; ++k) q[k] = limited(quotient(q[k])) + round_shift;
      return bytes(q);
    } else {
#pragma unroll
      for (int k = 0; k < Width; ++k) q[k] = quotient(q[k]);
      return packed(q);
    }
  }

 private:
  static constexpr bool integers =
      F.dtype == DType::i8 && !F.asymmetric;  ///< which take the short way, but hold no NaN

  /// Moves values to where the scale is.
  template <int Width>
  CERMET_DEVICE void move(float (&values)[Width]) const {
#pragma unroll
    for (int k = 0; k < Width; ++k) values[k] = integers && !finite_ ? 0 : values[k] * factor_;
  }

  /// What the low byte of an integer holds: without a bound no quotient is beyond it but one of 127.5.
  static CERMET_DEVICE float limited(float q) {
    if constexpr (F.bounded) q = fmaxf(q, -128.0f);
    return F.wide || F.bounded ? fminf(q, 127.0f) : q;
  }

  /// The residue of the reciprocal makes the first quotient one of the two neighbours of the exact one; Markstein's
  /// correction (1990) then rounds it.
  CERMET_DEVICE float quotient(float v) const {
    float q = v * reciprocal_;
    if constexpr (Exact) {
      q = fmaf(v, reciprocal_, fmaf(v, residue_, 0.0f));
      q = fmaf(fmaf(-q, scale_, v), reciprocal_, q);
    }
    if constexpr (F.bounded)
      if (fabsf(v) == infinity()) q = v;
    if constexpr (F.asymmetric) q = __fadd_rn(q, zero_);
    return q;
  }

  /// Quotients as fp8: none is an infinity, where there is no bound, so pairs need no other code for those.
  template <int Width>
  static CERMET_DEVICE Vector<Element<F.dtype>, Width> packed(const float (&q)[Width]) {
#if CERMET_ARCH >= 890
    if constexpr (Width % 2 == 0 && F.dtype != DType::i8 && !F.bounded) {
      Vector<uint16_t, Width / 2> pairs;
#pragma unroll
      for (int k = 0; k < Width; k += 2) {
        uint16_t pair;
        if constexpr (F.dtype == DType::f8_e4m3)
          asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(q[k + 1]), "f"(q[k]));
        else asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(q[k + 1]), "f"(q[k]));
        pairs[k / 2] = pair;
      }
      return __builtin_bit_cast(Vector<Element<F.dtype>, Width>, pairs);
    }
#endif
    return from_floats<Element<F.dtype>>(q);
  }

  /// Added to a number, it makes the hardware round to an integer, whose low byte is the quantized value: |q| is at
  /// most 127.5 and a rounding.
  static constexpr float round_shift = 12582912.0f;  // 1.5 * 2^23
  template <int Width>
  static CERMET_DEVICE Vector<int8_t, Width> bytes(const float (&shifted)[Width]) {
    if constexpr (Width % 4 == 0) {
      Words<Width / 4> words;
#pragma unroll
      for (int k = 0; k < Width; k += 4)
        words.at[k / 4] =
            __byte_perm(__byte_perm(__float_as_uint(shifted[k]), __float_as_uint(shifted[k + 1]), 0x0040),
                        __byte_perm(__float_as_uint(shifted[k + 2]), __float_as_uint(shifted[k + 3]), 0x0040), 0x5410);
      return __builtin_bit_cast(Vector<int8_t, Width>, words);
    } else {
      Vector<int8_t, Width> result;
#pragma unroll
      for (int k = 0; k < Width; ++k) result[k] = static_cast<int8_t>(__float_as_uint(shifted[k]));
      return result;
    }
  }

  float scale_, zero_, reciprocal_, residue_ = 0, factor_ = 1;
  bool ordinary_, finite_;
};

/// The largest magnitude of a thread's numbers; NaN where any is.
template <int Rows, int Width>
CERMET_DEVICE float largest_magnitude(const float (&v)[Rows][Width]) {
  float largest = 0;
#pragma unroll
  for (int j = 0; j < Rows; ++j)
#pragma unroll
    for (int i = 0; i < Width; ++i) largest = max_or_nan(largest, fabsf(v[j][i]));
  return fabsf(largest);
}

/// Quantizes a thread's numbers with the scale of a row, whose largest magnitude is given; returns the scale. Exact: as
/// dynamic_quant rounds, otherwise as norms that quantize. store(j, values): those of v[j].
template <QuantizedFormat F, bool Exact, int Rows, int Width, class Store>
CERMET_DEVICE float quantize_numbers(float (&v)[Rows][Width], float largest, Store&& store) {
  const QuantizationParams scale = quantization_params<F>({largest, 0});
  const Quantizer<F, Exact> quantizer(scale);
#pragma unroll
  for (int j = 0; j < Rows; ++j) quantizer.make_ordinary(v[j]);
#pragma unroll
  for (int j = 0; j < Rows; ++j) store(j, quantizer.template quantize_scaled<true>(v[j]));
  return scale.scale;
}

}  // namespace cermet
