// Rows in memory: where each begins, and vectors of its elements to and from float32, with the conversions that take
// two values at once.
#pragma once

#include "kernel/cuda/device/rowwise/row_params.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet {

struct RowIndex {
  uint32_t at[3];
};

CERMET_DEVICE RowIndex row_index(const RowDims& dims, uint32_t row) {
  if (dims.inner == 0) return {{row, 0, 0}};
  const uint32_t outer = row / dims.inner;
  return {{row % dims.inner, outer % dims.middle, outer / dims.middle}};
}

/// Uniform: there is one leading dimension.
template <class T, bool Uniform = false>
CERMET_DEVICE T* row_of(const RowOperand& operand, const RowIndex& row) {
  if constexpr (Uniform) return static_cast<T*>(operand.data) + row.at[0] * operand.step[0];
  return static_cast<T*>(operand.data) + row.at[0] * operand.step[0] + row.at[1] * operand.step[1] +
         row.at[2] * operand.step[2];
}

/// `from` is aligned to Width elements.
template <int Width, class T>
CERMET_DEVICE Vector<T, Width> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T, Width>*>(from);
}

template <class T, int Width>
CERMET_DEVICE void store_vector(T* to, const Vector<T, Width>& v) {
  if constexpr (sizeof(T) == 1 &&
                Width % 4 == 0) {  // bytes that were made as words: apart, each would be taken out and put back
    using Words = Vector<uint32_t, Width / 4>;
    *reinterpret_cast<Words*>(to) = __builtin_bit_cast(Words, v);
  } else {
    *reinterpret_cast<Vector<T, Width>*>(to) = v;
  }
}

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

/// Whether pairs of elements have instructions of their own.
template <class T>
inline constexpr bool pairs_up = CERMET_ARCH >= 800 && (IsBf16<T>::value || IsF16<T>::value);

/// Both elements of `most` raised to the magnitudes of those of `pair`; NaN stays.
template <class T>
CERMET_DEVICE uint32_t raise_to_magnitudes(uint32_t most, uint32_t pair) {
#if CERMET_ARCH >= 800
  const uint32_t magnitudes = pair & 0x7fff7fffu;
  if constexpr (IsBf16<T>::value) asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(most) : "r"(magnitudes));
  else asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(most) : "r"(magnitudes));
#endif
  return most;
}

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

}  // namespace cermet
