// From accumulator fragments to rows in memory.
#pragma once

#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemm {

/// Two numbers of a 16-bit type, rounded, the first in the low half.
template <class Out>
CERMET_DEVICE uint32_t pack_pair(float low, float high) {
  return static_cast<uint32_t>(from_float<Out>(low).bits) | static_cast<uint32_t>(from_float<Out>(high).bits) << 16;
}
#if CERMET_ARCH >= 800
template <>
CERMET_DEVICE uint32_t pack_pair<bf16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
CERMET_DEVICE uint32_t pack_pair<f16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#endif

#if CERMET_ARCH >= 900
/// Where 16 bytes `unit` of a row of 128 bytes lie, so that neither rows nor columns of 16 bytes meet in a bank: what
/// bulk copies call a 128-byte swizzle.
CERMET_DEVICE int swizzled(int row, int unit) { return row * 128 + (unit ^ (row & 7)) * 16; }

/// Results at a column and the next.
template <class Value>
struct Pair {
  Value x, y;
};

/// Columns whose results' operands are loaded together.
inline constexpr int load_columns = 32;

/// A warp's 16 rows of `Columns` results from fragments to shared memory. results.pair(at, h, column, slot)
/// (results.packed(..) of 16 bits) gives those at `column` and the next of row 8 * h + lane / 4, where column is 8 * j
/// + 2 * (lane % 4), `at` = 4 * j + 2 * h its place in the fragments and slot = j % 4; results.load(column) comes
/// before those of the load_columns from `column` on, and results.take_placed(address) before those of the 16 columns
/// that will stand there. address(row, byte) names a place of 16 bytes.
template <class Out, int First, int Columns, class Results, class Address>
CERMET_DEVICE void write_fragments(Results& results, Address&& address) {
  constexpr int bytes = sizeof(Out);
  static_assert(Columns % 16 == 0);  // fewer than load_columns: what is loaded past them is not used
  const int lane = static_cast<int>(lane_index()), t = lane % 4;
#pragma unroll
  for (int j = 0; j < Columns / 8; j += 2) {
    if (j % 4 == 0) results.load(First + 8 * j);
    if constexpr (bytes == 2) {
      char* const to = address(lane % 16, (8 * j + lane / 16 * 8) * bytes);
      results.take_placed(to);
      uint32_t quad[4];  // 8 x 8 matrices: upper and lower rows of columns 8 j, then of 8 (j + 1)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = First + 8 * (j + i / 2), h = i % 2;
        quad[i] = results.packed(column / 2 + 2 * h, h, column + 2 * t, (j + i / 2) % 4);
      }
      ptx::stmatrix_x4(to, quad);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = j + i / 2, h = i % 2;
        const int column = First + 8 * at;
        const auto v = results.pair(column / 2 + 2 * h, h, column + 2 * t, at % 4);
        Vector<Out, 2> two;
        two[0] = epilogue::rounded<Out>(v.x), two[1] = epilogue::rounded<Out>(v.y);
        const int byte = (8 * at + 2 * t) * bytes;
        *reinterpret_cast<Vector<Out, 2>*>(address(8 * h + lane / 4, byte / 16 * 16) + byte % 16) = two;
      }
    }
  }
}

/// Sends a warp's 16 rows of a tile [.., Columns] out with bulk tensor copies, through `staging`, the warp's own:
/// pieces of [16, 128 bytes], swizzled, 1024-byte aligned, `Pieces` at a time. `map` has boxes of a piece; what lies
/// outside its tensor is left out. wait_for_rows before the memory is used otherwise.
template <class Out, int Columns, int Pieces, class Results>
CERMET_DEVICE void store_pieces(Results& results, char* staging, const TensorMapBytes* map, int row, int column) {
  constexpr int width = 128 / sizeof(Out), count = Columns / width;
  static_assert(Columns % width == 0);
  const auto piece = [&]<int I>(Constant<I>) {
    char* const base = staging + I % Pieces * 16 * 128;
    if constexpr (I % Pieces == 0) {
      ptx::bulk_wait_read<0>();
      __syncwarp();
    }
    write_fragments<Out, I * width, width>(results, [&](int r, int byte) { return base + swizzled(r, byte / 16); });
    ptx::fence_async_shared();
    __syncwarp();
    if (lane_index() == 0) ptx::tma_store_2d(base, map, column + I * width, row);
    ptx::bulk_commit();
  };
  for_constants<count>(piece);
}

/// Until the rows that this thread sent with store_pieces have left shared memory.
CERMET_DEVICE void wait_for_rows() { ptx::bulk_wait_read<0>(); }

/// As store_pieces with ordinary stores: rows and columns past the limits are left out; a row has whole 16 bytes.
/// `staging` is [16, Pitch bytes], the warp's own, Chunk columns at a time.
template <class Out, int Columns, int Chunk, int Pitch, class Results>
CERMET_DEVICE void store_rows(Results& results, char* staging, Out* y, int64_t y_stride, int rows, int columns) {
  constexpr int bytes = sizeof(Out), lanes = Chunk * bytes / 16,
                step = 32 / lanes;  // lanes that write a row, rows that the warp writes at a time
  const int lane = static_cast<int>(lane_index()), own = lane % lanes * (16 / bytes);
  const auto chunk = [&]<int I>(Constant<I>) {
    __syncwarp();
    write_fragments<Out, I * Chunk, Chunk>(results, [&](int r, int byte) { return staging + r * Pitch + byte; });
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 16; r += step) {
      const int row = r + lane / lanes, column = I * Chunk + own;
      const auto unit = *reinterpret_cast<const Vector<uint32_t, 4>*>(staging + row * Pitch + own * bytes);
      if ((step <= 16 || row < 16) && row < rows && column < columns)
        *reinterpret_cast<Vector<uint32_t, 4>*>(y + row * y_stride + column) = unit;
    }
  };
  for_constants<Columns / Chunk>(chunk);
}
#endif

}  // namespace cermet::gemm
