// Products of register fragments by a warp: d += a * b, a row-major [M, K], b as columns [N, K]. With g = lane / 4 and
// t = lane % 4, 32-bit register i of a holds row g + 8 * (i % 2) at 4-byte step t + 4 * (i / 2) of K; register i of b
// holds column g at step t + 4 * i; d[0], d[1] are row g and columns 2t, 2t + 1, and d[2], d[3] row g + 8 (m8n8k16 has
// one register each and no second row).
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// float16, K = 8: 2 registers of a, one of b (sm_75 on).
CERMET_DEVICE void mma_m16n8k8(float (&d)[4], const uint32_t (&a)[2], uint32_t b, f16) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(b));
}

/// float16, K = 16. On sm_75 two steps of 8.
CERMET_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], f16) {
#if CERMET_ARCH >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const uint32_t low[2] = {a[0], a[1]}, high[2] = {a[2], a[3]};
  mma_m16n8k8(d, low, b[0], f16{});
  mma_m16n8k8(d, high, b[1], f16{});
#endif
}

#if CERMET_ARCH >= 890
/// e4m3, K = 32.
CERMET_DEVICE void mma_m16n8k32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], f8_e4m3) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

#if CERMET_ARCH >= 800
/// bfloat16, K = 16.
CERMET_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

/// int8, K = 16, 8 rows: one register of a, one of b (sm_75 on).
CERMET_DEVICE void mma_m8n8k16(int32_t (&d)[2], uint32_t a, uint32_t b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a), "r"(b));
}

/// int8, K = 32. On sm_75 four steps of 8 rows and K = 16.
CERMET_DEVICE void mma_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if CERMET_ARCH >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  int32_t upper[2] = {d[0], d[1]}, lower[2] = {d[2], d[3]};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    mma_m8n8k16(upper, a[2 * i], b[i]);
    mma_m8n8k16(lower, a[2 * i + 1], b[i]);
  }
  d[0] = upper[0], d[1] = upper[1], d[2] = lower[0], d[3] = lower[1];
#endif
}

}  // namespace cermet::ptx
