// Rows in memory: where each begins, and vectors of its elements.
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

}  // namespace cermet
