// Keys and values of 8 bits on their way to tiles of 16-bit elements. Every stored value is one of both 16-bit types,
// so nothing is rounded; scales are applied to scores and weights.
#pragma once

#include "kernel/cuda/device/attention/prefill_copy.cuh"

namespace cermet::attention {

/// Four elements, the first in the lowest byte, as two pairs of f16.
CERMET_DEVICE void widen(uint32_t four, uint32_t (&pairs)[2], int8_t) {
  const uint32_t above = four ^ 0x80808080u;  // 128 more, without a sign
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t shifted = __byte_perm(above, 0x64646464u, i == 0 ? 0x4140 : 0x4342);  // 1024 more than that
    asm("sub.f16x2 %0, %1, %2;" : "=r"(pairs[i]) : "r"(shifted), "r"(0x64806480u));
  }
}
CERMET_DEVICE void widen(uint32_t four, uint32_t (&pairs)[2], f8_e5m2) {  // the upper half of an f16
  pairs[0] = __byte_perm(four, 0, 0x1404);
  pairs[1] = __byte_perm(four, 0, 0x3424);
}
CERMET_DEVICE void widen(uint32_t four, uint32_t (&pairs)[2], f8_e4m3) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#if CERMET_ARCH >= 890
    const auto two = static_cast<uint16_t>(four >> 16 * i);
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pairs[i]) : "h"(two));
#else
    // Exponent and mantissa moved into an f16, whose exponent bias is 8 larger; 0x7f is the only NaN.
    const uint32_t upper = __byte_perm(four, 0, i == 0 ? 0x1404 : 0x3424), magnitude = (upper & 0x7f007f00u) >> 1;
    uint32_t value;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(value) : "r"(magnitude), "r"(0x5c005c00u));
    const uint32_t nan = ((magnitude + 0x00800080u) & 0x40004000u) >> 14;
    pairs[i] = value | nan * 0x7e00u | (upper & 0x80008000u);
#endif
  }
}

CERMET_DEVICE uint32_t convert_pair(uint32_t pair, f16) { return pair; }
CERMET_DEVICE uint32_t convert_pair(uint32_t pair, bf16) {
  return pack(first_of(pair, f16{}), second_of(pair, f16{}), bf16{});
}

/// Rows of `Size` bytes as they were stored.
template <int Size>
struct StoredRows {
  static CERMET_DEVICE int offset(int row, int chunk) { return row * Size + 16 * chunk; }
};

/// Widens the elements that this thread copied: with the same `Copy`, to `from`. `Unroll`: passes at a time.
template <class From, class T, class Rows, int Size, int Count, int Unroll, class Copy>
CERMET_DEVICE void widen_rows(const char* from, char* to) {
#pragma unroll Unroll
  for (int i = 0; i < Copy::passes; ++i) {
    const int row = Copy::row(i), chunk = Copy::chunk(i);
    if (!Copy::even && row >= Count) continue;
    const auto stored = *reinterpret_cast<const Vector<uint32_t, 4>*>(from + StoredRows<Size>::offset(row, chunk));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Vector<uint32_t, 4> wide;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        uint32_t pairs[2];
        widen(stored[2 * half + j], pairs, From{});
        wide[2 * j] = convert_pair(pairs[0], T{}), wide[2 * j + 1] = convert_pair(pairs[1], T{});
      }
      *reinterpret_cast<Vector<uint32_t, 4>*>(to + Rows::offset(row, 2 * chunk + half)) = wide;
    }
  }
}

}  // namespace cermet::attention
