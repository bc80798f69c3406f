// Asynchronous products of a warpgroup (sm_90a): d[64, N] += a[64, 32 bytes] * b[N, 32 bytes]^T with both operands in
// shared memory, K contiguous, in rows of 128 bytes with 128-byte swizzle. Thread t of the warpgroup holds in d[4 * j +
// 2 * h + i] row 16 * (t / 32) + 8 * h + t % 32 / 4 and column 8 * j + 2 * (t % 4) + i.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/types.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

/// Describes a tile to wgmma: rows of 128 bytes, groups of 8 rows 1024 bytes apart, the tile 1024-byte aligned. Adding
/// 2 moves 32 bytes along K.
CERMET_DEVICE uint64_t wgmma_descriptor(const void* tile) {
  constexpr uint64_t swizzle_128 = uint64_t{1} << 62, group_step = uint64_t{1024 >> 4} << 32,
                     unused_step = uint64_t{1} << 16;
  return swizzle_128 | group_step | unused_step | ((shared_address(tile) & 0x3ffffu) >> 4);
}

/// Describes a tile of 16-bit elements whose rows lie along K: pieces of 64 columns (128 bytes) one after the other,
/// `piece_bytes` apart, 1024-byte aligned. Adding 128 moves 16 rows.
CERMET_DEVICE uint64_t wgmma_descriptor_columns(const void* tile, uint32_t piece_bytes) {
  constexpr uint64_t swizzle_128 = uint64_t{1} << 62, group_step = uint64_t{1024 >> 4} << 32;
  return swizzle_128 | group_step | uint64_t{piece_bytes >> 4} << 16 | ((shared_address(tile) & 0x3ffffu) >> 4);
}

/// Describes a tile without swizzle: 8 rows of 16 bytes along K side by side, the next 8 rows after them, and the next
/// 16 bytes along K `step` bytes on; 16-byte aligned. Adding step / 8 moves 32 bytes along K.
CERMET_DEVICE uint64_t wgmma_descriptor_plain(const void* tile, uint32_t step) {
  constexpr uint64_t group_step = uint64_t{128 >> 4} << 32;
  return group_step | uint64_t{step >> 4} << 16 | ((shared_address(tile) & 0x3ffffu) >> 4);
}

/// Orders register accesses before the products that follow.
CERMET_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Closes the group of products since the last call.
CERMET_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `Pending` of the latest groups are unfinished.
template <int Pending>
CERMET_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
/// Keeps the compiler from moving accesses to an accumulator across this point.
CERMET_DEVICE void wgmma_touch(float& d) { asm volatile("" : "+f"(d)::"memory"); }
CERMET_DEVICE void wgmma_touch(int32_t& d) { asm volatile("" : "+r"(d)::"memory"); }

/// A copy in a register of its own.
CERMET_DEVICE uint32_t wgmma_move(uint32_t x) {
  uint32_t y;
  asm volatile("mov.b32 %0, %1;" : "=r"(y) : "r"(x) : "memory");
  return y;
}

/// One instruction, by columns N and operand types: multiply(d, a, b, accumulate); with accumulate = 0 it sets d, whose
/// elements are Sum.
template <int N, class A, class B>
struct Wgmma;

// Instructions take literal operand lists. CERMET_D<n> names the first n registers of d, CERMET_V<n> binds them with a
// constraint.

#define CERMET_D4 "%0, %1, %2, %3"
#define CERMET_D8 CERMET_D4 ", %4, %5, %6, %7"
#define CERMET_D16 CERMET_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define CERMET_D24 CERMET_D16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define CERMET_D32 CERMET_D24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define CERMET_D40 CERMET_D32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define CERMET_D48 CERMET_D32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define CERMET_D56 CERMET_D48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define CERMET_D64 CERMET_D48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define CERMET_D80 \
  CERMET_D64       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define CERMET_D96                                                                                                   \
  CERMET_D64                                                                                                         \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, " \
  "%86, %87, %88, %89, %90, %91, %92, "                                                                              \
  "%93, %94, %95"
#define CERMET_D112 \
  CERMET_D96        \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define CERMET_D128 \
  CERMET_D112 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define CERMET_EIGHT(c, i) \
  c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define CERMET_V4(c) c(d[0]), c(d[1]), c(d[2]), c(d[3])
#define CERMET_V8(c) CERMET_EIGHT(c, 0)
#define CERMET_V16(c) CERMET_V8(c), CERMET_EIGHT(c, 8)
#define CERMET_V24(c) CERMET_V16(c), CERMET_EIGHT(c, 16)
#define CERMET_V32(c) CERMET_V24(c), CERMET_EIGHT(c, 24)
#define CERMET_V40(c) CERMET_V32(c), CERMET_EIGHT(c, 32)
#define CERMET_V48(c) CERMET_V32(c), CERMET_EIGHT(c, 32), CERMET_EIGHT(c, 40)
#define CERMET_V56(c) CERMET_V48(c), CERMET_EIGHT(c, 48)
#define CERMET_V64(c) CERMET_V48(c), CERMET_EIGHT(c, 48), CERMET_EIGHT(c, 56)
#define CERMET_V80(c) CERMET_V64(c), CERMET_EIGHT(c, 64), CERMET_EIGHT(c, 72)
#define CERMET_V96(c) CERMET_V64(c), CERMET_EIGHT(c, 64), CERMET_EIGHT(c, 72), CERMET_EIGHT(c, 80), CERMET_EIGHT(c, 88)
#define CERMET_V112(c) CERMET_V96(c), CERMET_EIGHT(c, 96), CERMET_EIGHT(c, 104)
#define CERMET_V128(c) CERMET_V112(c), CERMET_EIGHT(c, 112), CERMET_EIGHT(c, 120)

#define CERMET_WGMMA(N, instruction, A, B, Accumulator, constraint, regs, vals, ia, ib, ip, flags)                   \
  template <>                                                                                                        \
  struct Wgmma<N, A, B> {                                                                                            \
    using Sum = Accumulator;                                                                                         \
    CERMET_DEVICE static void multiply(Accumulator (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {            \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ip ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N instruction \
                   " {" regs "}, %" #ia ", %" #ib ", p" flags ";\n}"                                                 \
                   : vals(constraint)                                                                                \
                   : "l"(a), "l"(b), "r"(accumulate));                                                               \
    }                                                                                                                \
  };

// The types for one N: names of the registers, their binding, and the numbers of the operands that follow d.
#define CERMET_WGMMA_TYPES(N, regs, vals, ia, ib, ip)                                                   \
  CERMET_WGMMA(N, "k32.s32.s8.s8", int8_t, int8_t, int32_t, "+r", regs, vals, ia, ib, ip, "")           \
  CERMET_WGMMA(N, "k16.f32.bf16.bf16", bf16, bf16, float, "+f", regs, vals, ia, ib, ip, ", 1, 1, 0, 0") \
  CERMET_WGMMA(N, "k16.f32.f16.f16", f16, f16, float, "+f", regs, vals, ia, ib, ip, ", 1, 1, 0, 0")     \
  CERMET_WGMMA(N, "k32.f32.e4m3.e4m3", f8_e4m3, f8_e4m3, float, "+f", regs, vals, ia, ib, ip, ", 1, 1") \
  CERMET_WGMMA(N, "k32.f32.e4m3.e5m2", f8_e4m3, f8_e5m2, float, "+f", regs, vals, ia, ib, ip, ", 1, 1") \
  CERMET_WGMMA(N, "k32.f32.e5m2.e4m3", f8_e5m2, f8_e4m3, float, "+f", regs, vals, ia, ib, ip, ", 1, 1") \
  CERMET_WGMMA(N, "k32.f32.e5m2.e5m2", f8_e5m2, f8_e5m2, float, "+f", regs, vals, ia, ib, ip, ", 1, 1")

CERMET_WGMMA_TYPES(8, CERMET_D4, CERMET_V4, 4, 5, 6)
CERMET_WGMMA_TYPES(16, CERMET_D8, CERMET_V8, 8, 9, 10)
CERMET_WGMMA_TYPES(32, CERMET_D16, CERMET_V16, 16, 17, 18)
CERMET_WGMMA_TYPES(48, CERMET_D24, CERMET_V24, 24, 25, 26)
CERMET_WGMMA_TYPES(64, CERMET_D32, CERMET_V32, 32, 33, 34)
CERMET_WGMMA_TYPES(80, CERMET_D40, CERMET_V40, 40, 41, 42)
CERMET_WGMMA_TYPES(96, CERMET_D48, CERMET_V48, 48, 49, 50)
CERMET_WGMMA_TYPES(112, CERMET_D56, CERMET_V56, 56, 57, 58)
CERMET_WGMMA_TYPES(128, CERMET_D64, CERMET_V64, 64, 65, 66)
CERMET_WGMMA_TYPES(192, CERMET_D96, CERMET_V96, 96, 97, 98)
CERMET_WGMMA_TYPES(224, CERMET_D112, CERMET_V112, 112, 113, 114)
CERMET_WGMMA_TYPES(256, CERMET_D128, CERMET_V128, 128, 129, 130)

/// The same with a in registers (four of mma.cuh's fragments, one for each warp's 16 rows) and b[K, N] with N
/// contiguous, or of 8-bit elements b[N, K] with K contiguous: accumulates.
template <int N, class T>
struct WgmmaRows;

#define CERMET_WGMMA_ROWS(N, instruction, T, flags, regs, vals, a0, a1, a2, a3, ib)                           \
  template <>                                                                                                 \
  struct WgmmaRows<N, T> {                                                                                    \
    CERMET_DEVICE static void multiply(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b) {               \
      asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #N instruction \
                   " {" regs "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #ib ", p" flags ";\n}"          \
                   : vals("+f")                                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                     \
    }                                                                                                         \
  };
#define CERMET_WGMMA_ROWS_TYPES(N, regs, vals, a0, a1, a2, a3, ib)                             \
  CERMET_WGMMA_ROWS(N, "k16.f32.bf16.bf16", bf16, ", 1, 1, 1", regs, vals, a0, a1, a2, a3, ib) \
  CERMET_WGMMA_ROWS(N, "k16.f32.f16.f16", f16, ", 1, 1, 1", regs, vals, a0, a1, a2, a3, ib)    \
  CERMET_WGMMA_ROWS(N, "k32.f32.e4m3.e4m3", f8_e4m3, ", 1, 1", regs, vals, a0, a1, a2, a3, ib)

CERMET_WGMMA_ROWS_TYPES(32, CERMET_D16, CERMET_V16, 16, 17, 18, 19, 20)
CERMET_WGMMA_ROWS_TYPES(48, CERMET_D24, CERMET_V24, 24, 25, 26, 27, 28)
CERMET_WGMMA_ROWS_TYPES(64, CERMET_D32, CERMET_V32, 32, 33, 34, 35, 36)
CERMET_WGMMA_ROWS_TYPES(80, CERMET_D40, CERMET_V40, 40, 41, 42, 43, 44)
CERMET_WGMMA_ROWS_TYPES(96, CERMET_D48, CERMET_V48, 48, 49, 50, 51, 52)
CERMET_WGMMA_ROWS_TYPES(112, CERMET_D56, CERMET_V56, 56, 57, 58, 59, 60)
CERMET_WGMMA_ROWS_TYPES(128, CERMET_D64, CERMET_V64, 64, 65, 66, 67, 68)
CERMET_WGMMA_ROWS_TYPES(160, CERMET_D80, CERMET_V80, 80, 81, 82, 83, 84)
CERMET_WGMMA_ROWS_TYPES(192, CERMET_D96, CERMET_V96, 96, 97, 98, 99, 100)
CERMET_WGMMA_ROWS_TYPES(224, CERMET_D112, CERMET_V112, 112, 113, 114, 115, 116)
CERMET_WGMMA_ROWS_TYPES(256, CERMET_D128, CERMET_V128, 128, 129, 130, 131, 132)

#undef CERMET_WGMMA_ROWS
#undef CERMET_WGMMA_ROWS_TYPES
#undef CERMET_D4
#undef CERMET_V4
#undef CERMET_D8
#undef CERMET_V8
#undef CERMET_D16
#undef CERMET_V16
#undef CERMET_D24
#undef CERMET_V24
#undef CERMET_D32
#undef CERMET_V32
#undef CERMET_D40
#undef CERMET_D48
#undef CERMET_D56
#undef CERMET_V40
#undef CERMET_V48
#undef CERMET_V56
#undef CERMET_D64
#undef CERMET_V64
#undef CERMET_D80
#undef CERMET_D96
#undef CERMET_D112
#undef CERMET_V80
#undef CERMET_V96
#undef CERMET_V112
#undef CERMET_D128
#undef CERMET_V128
#undef CERMET_EIGHT
#undef CERMET_WGMMA
#undef CERMET_WGMMA_TYPES

}  // namespace cermet::ptx
#endif
