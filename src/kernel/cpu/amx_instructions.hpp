// Instructions of AMX by name; tile registers are numbers. Assembly in place of the compiler's intrinsics, whose loads
// GCC 12 may move above the stores of what they load. Between them an AmxTiles must live.
#pragma once

#include <cstdint>

namespace cermet::cpu {

#if defined(__x86_64__)

template <int tile>
[[gnu::always_inline]] inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}

/// Rows from `at` on, `step` bytes apart.
template <int tile>
[[gnu::always_inline]] inline void load_tile(const void* at, std::int64_t step) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(at), "r"(step), "i"(tile) : "memory");
}

template <int tile>
[[gnu::always_inline]] inline void store_tile(void* at, std::int64_t step) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(at), "r"(step), "i"(tile) : "memory");
}

/// sums[r][c] += sum over 16 pairs p of rows[r][p] * columns[p][c]: of bf16, the first and the second products of all
/// pairs each in a chain of fused multiply-adds from zero, then both chains together, then the sum. Subnormal numbers
/// count as zero; rounding is to nearest even.
struct AmxBf16 {
  template <int sums, int rows, int columns>
  [[gnu::always_inline]] static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(rows), "i"(columns));
  }
};

/// The same of 16 quads of int8, in int32 modulo 2^32.
struct AmxInt8 {
  template <int sums, int rows, int columns>
  [[gnu::always_inline]] static void multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(rows), "i"(columns));
  }
};

#endif

}  // namespace cermet::cpu
