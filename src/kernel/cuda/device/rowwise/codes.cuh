// Arithmetic of quantization: the scale of a range and the codes of values, operation by operation as op/quantization.hpp defines them.
#pragma once

#include "kernel/cuda/device/rowwise/row.cuh"

namespace cermet {

struct CodeFormat {
  DType dtype = DType::i8;
  bool wide = false;  ///< int8 scale is absmax / 127.5
  bool asymmetric = false;
  int group = 0;  ///< values along a row that share a scale; 0: all of it
};

struct CodeScale {
  float scale, zero_point;
};

/// What the scale comes from: the largest value and the largest negated one, at least 0. Both are max |v| where the format is symmetric. NaN stays.
struct ValueRange {
  float high = 0, low = 0;
};

/// The larger; NaN where either is.
__device__ __forceinline__ float max_or_nan(float a, float b) {
#if CERMET_ARCH >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  return a != a || a > b ? a : b;
#endif
}

template <CodeFormat F>
__device__ __forceinline__ void widen(ValueRange& range, float v) {
  range.high = max_or_nan(range.high, F.asymmetric ? v : fabsf(v));
  if constexpr (F.asymmetric) range.low = max_or_nan(range.low, -v);
}

/// Numbers that are not negative have the order of their bits, and NaN, whose sign is dropped, is above them all.
__device__ __forceinline__ uint32_t magnitude_bits(float x) { return __float_as_uint(x) & 0x7fffffffu; }

/// The largest over `Lanes` neighbouring lanes, at most 32, in each of them.
template <int Lanes>
__device__ __forceinline__ uint32_t warp_max(uint32_t bits) {
#if CERMET_ARCH >= 800
  constexpr bool one_instruction = Lanes == 32;
#else
  constexpr bool one_instruction = false;
#endif
  if constexpr (one_instruction) {
#if CERMET_ARCH >= 800
    bits = __reduce_max_sync(0xffffffffu, bits);
#endif
  } else {
#pragma unroll
    for (int offset = Lanes / 2; offset > 0; offset /= 2) bits = max_of(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
  }
  return bits;
}

/// The range over the lanes of a row; `scratch`: [64] words, unused up to 32 lanes.
template <CodeFormat F, int Lanes>
__device__ __forceinline__ ValueRange row_range(ValueRange range, uint32_t* scratch) {
  constexpr int warps = Lanes / 32;
  uint32_t high = warp_max<min_of(Lanes, 32)>(magnitude_bits(range.high)), low = 0;
  if constexpr (F.asymmetric) low = warp_max<min_of(Lanes, 32)>(magnitude_bits(range.low));
  if constexpr (warps > 1) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      scratch[threadIdx.x / 32] = high;
      if constexpr (F.asymmetric) scratch[32 + threadIdx.x / 32] = low;
    }
    __syncthreads();
    high = warp_max<32>(lane < warps ? scratch[lane] : 0u);
    if constexpr (F.asymmetric) low = warp_max<32>(lane < warps ? scratch[32 + lane] : 0u);
  }
  return {__uint_as_float(high), __uint_as_float(low)};
}

template <CodeFormat F>
__device__ __forceinline__ CodeScale code_scale(ValueRange range) {
  if constexpr (!F.asymmetric) {
    constexpr float limit = F.dtype == DType::f8_e4m3 ? 448.0f : F.dtype == DType::f8_e5m2 ? 57344.0f : F.wide ? 127.5f : 127.0f;
    return {range.high / limit, 0};
  } else {
    const float scale = (range.high + range.low) / 255.0f, zero = rintf(-128.0f + range.low / scale);
    if (!(scale > 0) || zero != zero) return {scale, 0};
    return {scale, fminf(fmaxf(zero, -128.0f), 127.0f)};
  }
}

/// Codes of values with one scale: value / scale + zero_point, correctly rounded at each step, and rounded to a code. Not Exact: the quotient may be off
/// by a unit in the last place.
template <CodeFormat F, bool Exact>
class Quantizer {
 public:
  __device__ __forceinline__ explicit Quantizer(CodeScale s) : scale_(s.scale), zero_(s.zero_point) {
    // Scales near the ends of float32 are brought to the middle together with the values, which changes no quotient that a code can show.
    ordinary_ = scale_ >= 0x1p-60f && scale_ <= 0x1p60f;
    finite_ = scale_ < infinity();
    if (!ordinary_) factor_ = scale_ < 1 ? 0x1p100f : 0x1p-100f;
    scale_ *= factor_;
    reciprocal_ = __frcp_rn(scale_);
    if (scale_ == 0 || !(scale_ < infinity())) {  // zeros have codes 0; a finite value over an infinity is 0, and an infinite one NaN
      reciprocal_ = scale_ != scale_ && (F.dtype != DType::i8 || F.asymmetric) ? scale_ : 0;
      scale_ = 1;
    }
    if constexpr (Exact) residue_ = fmaf(-scale_, reciprocal_, 1.0f) * reciprocal_;
  }

  template <int Width>
  __device__ __forceinline__ Vector<Element<F.dtype>, Width> codes(const float (&values)[Width]) const {
    float q[Width];
#pragma unroll
    for (int k = 0; k < Width; ++k) q[k] = values[k];
    if (!ordinary_) {
#pragma unroll
      for (int k = 0; k < Width; ++k) q[k] = F.dtype == DType::i8 && !F.asymmetric && !finite_ ? 0 : q[k] * factor_;
    }
#pragma unroll
    for (int k = 0; k < Width; ++k) q[k] = quotient(q[k]);
    if constexpr (F.dtype == DType::i8 && !F.asymmetric) return bytes(q);
    else return from_floats<Element<F.dtype>>(q);
  }

 private:
  /// The residue of the reciprocal makes the first quotient one of the two neighbours of the exact one; Markstein's correction (1990) then rounds it.
  __device__ __forceinline__ float quotient(float v) const {
    float q = v * reciprocal_;
    if constexpr (Exact) {
      q = fmaf(v, reciprocal_, fmaf(v, residue_, 0.0f));
      q = fmaf(fmaf(-q, scale_, v), reciprocal_, q);
    }
    if constexpr (F.asymmetric) q = __fadd_rn(q, zero_);
    return q;
  }

  /// Low bytes of q + 1.5 * 2^23, where the hardware rounds to integers: |q| is at most 127.5 and a rounding.
  template <int Width>
  static __device__ __forceinline__ Vector<int8_t, Width> bytes(const float (&q)[Width]) {
    uint32_t shifted[Width];
#pragma unroll
    for (int k = 0; k < Width; ++k) shifted[k] = __float_as_uint((F.wide ? fminf(q[k], 127.0f) : q[k]) + 12582912.0f);
    if constexpr (Width % 4 == 0) {
      union {
        Vector<uint32_t, Width / 4> words;
        Vector<int8_t, Width> bytes;
      } packed;
#pragma unroll
      for (int k = 0; k < Width; k += 4)
        packed.words[k / 4] = __byte_perm(__byte_perm(shifted[k], shifted[k + 1], 0x0040), __byte_perm(shifted[k + 2], shifted[k + 3], 0x0040), 0x5410);
      return packed.bytes;
    } else {
      Vector<int8_t, Width> result;
#pragma unroll
      for (int k = 0; k < Width; ++k) result[k] = static_cast<int8_t>(shifted[k]);
      return result;
    }
  }

  float scale_, zero_, reciprocal_, residue_ = 0, factor_ = 1;
  bool ordinary_, finite_;
};

}  // namespace cermet
