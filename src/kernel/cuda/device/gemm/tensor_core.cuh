// Sums of a tile on the tensor cores with mma.sync (sm_75 on): float16, bfloat16 (sm_80 on) and int8. Slabs of both
// operands stand in a ring in shared memory, filled by asynchronous copies where the architecture has them. Rows are
// 16-byte aligned.
#pragma once

#include "kernel/cuda/device/gemm/general.hpp"
#include "kernel/cuda/device/ptx/cp_async.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/mma.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemm {

template <GeneralConfig C, class Team>
struct TensorCore {
  using T = Element<C.a>;
  static constexpr bool integers = C.a == DType::i8;
  using Sum = Element<integers ? DType::i32 : DType::f32>;
  static constexpr int tile = C.block, own = tile / 16, half = own / 2;
  static constexpr int tiles = own / 2;  // 16 x 8 products of a warp along each axis; warps lie 2 x 4
  static constexpr int slab = 64 / static_cast<int>(sizeof(T));  // reduction steps: 64 bytes
  static constexpr int inner_pitch = 64 + 16,
                       outer_pitch = tile * 2 + 16;  // bytes: [outer][k] and [k][outer], padded against bank conflicts
  static constexpr int slab_bytes = tile * inner_pitch;
  static_assert(C.a == C.b && sizeof(T) <= 2);
  static_assert(!integers || (!C.a_outer && !C.b_outer));
  static_assert(slab * outer_pitch <= slab_bytes || integers);
  static_assert(C.stages >= 2);

  static __device__ int lane() { return static_cast<int>(lane_index()); }
  static __device__ int warp_row() { return static_cast<int>(Team::rank()) / 128 * (tile / 2); }
  /// First column of the warp's products n: half of them in each half of the tile.
  static __device__ int warp_column(int n) {
    const int warp = static_cast<int>(Team::rank()) / 32 % 4;
    return (n < tiles / 2 ? 0 : tile / 2) + warp * (tile / 8) + n % (tiles / 2) * 8;
  }
  static __device__ int row_of(int i) { return warp_row() + i / 2 * 16 + i % 2 * 8 + lane() / 4; }
  static __device__ int column_of(int j) { return warp_column(j / 2) + lane() % 4 * 2 + j % 2; }

  /// Starts the copies of a slab: 16 bytes by a thread at a time, zeros past the ends.
  template <bool Outer, class Row>
  static CERMET_DEVICE void load(Row&& row, int64_t k_step, int k, int last, char* shared) {
    constexpr int elements = 16 / static_cast<int>(sizeof(T)), copies = tile * 4 / general_threads;
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      const int at = static_cast<int>(Team::rank()) + i * general_threads;
      if constexpr (Outer) {
        const int u = at / (tile / elements), outer = at % (tile / elements) * elements;
        int count = 0;  // neighbours that exist
#pragma unroll
        for (int j = 0; j < elements; ++j) count += row(outer + j) != nullptr;
        if (k + u >= last) count = 0;
        const T* const from = row(outer);
        ptx::cp_async<16>(shared + u * outer_pitch + outer * static_cast<int>(sizeof(T)),
                          count > 0 ? from + (k + u) * k_step : row(0), count * static_cast<int>(sizeof(T)));
      } else {
        const int outer = at / 4, u = at % 4 * elements;
        const T* const from = row(outer);
        const int count = from != nullptr ? min_of(max_of(last - k - u, 0), elements) : 0;
        ptx::cp_async<16>(shared + outer * inner_pitch + at % 4 * 16, count > 0 ? from + k + u : row(0),
                          count * static_cast<int>(sizeof(T)));
      }
    }
  }

  /// Rows [row, row + 16) of a, 32 bytes from `step` on along k.
  static CERMET_DEVICE void load_a(uint32_t (&a)[4], const char* slab_of_a, int row, int step) {
    const int l = lane();
    if constexpr (C.a_outer)
      ptx::ldmatrix_x4_trans(a, slab_of_a + (step * 16 + l / 16 * 8 + l % 8) * outer_pitch + (row + l / 8 % 2 * 8) * 2);
    else ptx::ldmatrix_x4(a, slab_of_a + (row + l % 16) * inner_pitch + step * 32 + l / 16 * 16);
  }
  /// Columns [first, first + 8) of b in registers 0 and 1, [second, second + 8) in 2 and 3.
  static CERMET_DEVICE void load_b(uint32_t (&b)[4], const char* slab_of_b, int first, int second, int step) {
    const int l = lane(), column = l < 16 ? first : second;
    if constexpr (C.b_outer)
      ptx::ldmatrix_x4_trans(b, slab_of_b + (step * 16 + l / 8 % 2 * 8 + l % 8) * outer_pitch + column * 2);
    else ptx::ldmatrix_x4(b, slab_of_b + (column + l % 8) * inner_pitch + step * 32 + l / 8 % 2 * 16);
  }
  static CERMET_DEVICE void multiply_add(Sum (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    if constexpr (integers) ptx::mma_m16n8k32(d, a, b);
    else ptx::mma_m16n8k16(d, a, b, T{});
  }

  /// Adds to the sums of a tile reduction steps [first, last). a_row(outer) and b_row(outer): address of element
  /// (outer, 0), null past the end.
  template <class ARow, class BRow>
  static CERMET_DEVICE void multiply(const GeneralParams& p, ARow&& a_row, BRow&& b_row, int first, int last,
                                     char* smem, Sum (&sums)[own][own]) {
    multiply_slabs(first, last, smem, sums, [&](int k, char* a, char* b) {
      load<C.a_outer>(a_row, p.a_k, k, last, a);
      load<C.b_outer>(b_row, p.b_k, k, last, b);
    });
  }

  /// The same; fill(k, a, b) starts the copies of both operands' slabs from step k on. It is called for one slab after
  /// the other.
  template <class Fill>
  static CERMET_DEVICE void multiply_slabs(int first, int last, char* smem, Sum (&sums)[own][own], Fill&& fill) {
    Sum d[tiles][tiles][4];
#pragma unroll
    for (int i = 0; i < own; ++i)
#pragma unroll
      for (int j = 0; j < own; ++j) d[i / 2][j / 2][i % 2 * 2 + j % 2] = sums[i][j];
    const auto a_slab = [&](int stage) { return smem + stage * 2 * slab_bytes; };
    const auto load_slab = [&](int k, int stage) {
      if (k < last) fill(k, a_slab(stage), a_slab(stage) + slab_bytes);
      ptx::cp_async_commit();
    };
#pragma unroll
    for (int s = 0; s + 1 < C.stages; ++s) load_slab(first + s * slab, s);
    int stage = 0;
    for (int k = first; k < last; k += slab) {
      ptx::cp_async_wait<C.stages - 2>();
      Team::sync();
      load_slab(k + (C.stages - 1) * slab, stage == 0 ? C.stages - 1 : stage - 1);
      const char* const a_at = a_slab(stage);
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        uint32_t a[tiles][4], b[tiles / 2][4];
#pragma unroll
        for (int i = 0; i < tiles; ++i) load_a(a[i], a_at, warp_row() + i * 16, step);
#pragma unroll
        for (int j = 0; j < tiles; j += 2)
          load_b(b[j / 2], a_at + slab_bytes, warp_column(j), warp_column(j + 1), step);
#pragma unroll
        for (int i = 0; i < tiles; ++i)
#pragma unroll
          for (int j = 0; j < tiles; ++j) {
            const uint32_t own_b[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
            multiply_add(d[i][j], a[i], own_b);
          }
      }
      stage = stage + 1 == C.stages ? 0 : stage + 1;
    }
    ptx::cp_async_wait<0>();
    Team::sync();  // the slabs are free
#pragma unroll
    for (int i = 0; i < own; ++i)
#pragma unroll
      for (int j = 0; j < own; ++j) sums[i][j] = d[i / 2][j / 2][i % 2 * 2 + j % 2];
  }
};

}  // namespace cermet::gemm
