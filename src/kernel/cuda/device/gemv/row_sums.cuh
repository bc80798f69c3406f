// Sums of a warp: its pieces of a row of weights times what its lanes hold of x. Multiply-adds in float32, byte dot
// products for int8.
#pragma once

#include "kernel/cuda/device/gemv/row_work.cuh"
#include "kernel/cuda/device/gemv/vectors.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemv {

/// What a lane holds of a row: floats, or int8 where the weight is int8.
template <Config C, int Held, bool Quantized = integer<C>>
struct HeldRow {
  float v[Held][lane_elements<C.w>];
};
template <Config C, int Held>
struct HeldRow<C, Held, true> {
  Piece v[Held];
};

template <Config C, class E>
struct RowSums {
  using S32 = Sum<C>;
  using Segment = typename RowWork<C>::Segment;
  static constexpr bool ordered = integer<C> && C.blocked;  ///< scaled sums of blocks are added in order
  static constexpr int matrices = C.dual ? 2 : 1;
  static constexpr int sums =
      matrices + (E::column_sums ? 1 : 0);  ///< of a result; the last is that of the weight's quantized values
  static constexpr RowShape S =
      row_shape(C.k, RowWork<C>::element, C.stream, ordered, sums, C.ring_bytes, C.warps, C.compact);
  static constexpr int mine = S.stage_rows / S.side;  ///< rows of a stage that a warp takes
  using Held = HeldRow<C, S.held>;
  static_assert(!C.stream || S.row_bytes % 16 == 0);
  static_assert(!C.compact || (C.stream && C.w == DType::bf16 && C.k % compact_piece_elements == 0));
  static_assert(!(E::column_sums && (C.dual || C.blocked)));

  /// One piece of a lane times what the lane holds of x.
  static CERMET_DEVICE void multiply(const Piece& w, const float (&x)[lane_elements<C.w>], float& even, float& odd) {
    float v[lane_elements<C.w>];
    to_floats<C.w>(w, v);
#pragma unroll
    for (int i = 0; i < lane_elements<C.w>; i += 2) {
      even = fmaf(v[i], x[i], even);
      odd = fmaf(v[i + 1], x[i + 1], odd);
    }
  }
  /// `ones` gets the sum of the weight's quantized values, which a zero point needs.
  static CERMET_DEVICE void multiply(const Piece& w, const Piece& x, int32_t& even, int32_t& ones) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      even = __dp4a(static_cast<int>(w[i]), static_cast<int>(x[i]), even);
      if constexpr (E::column_sums) ones = __dp4a(static_cast<int>(w[i]), 0x01010101, ones);
    }
  }

  /// Sums of `Count` values over the warp: lane l gets that of value l / (32 / Count).
  template <int Count>
  static CERMET_DEVICE S32 fold(S32 (&v)[Count]) {
    const int lane = static_cast<int>(lane_index());
    int width = 16;
#pragma unroll
    for (int n = Count; n > 1; n /= 2, width /= 2)
#pragma unroll
      for (int i = 0; i < n / 2; ++i) {
        const bool upper = (lane & width) != 0;
        const S32 give = upper ? v[i] : v[i + n / 2], keep = upper ? v[i + n / 2] : v[i];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, give, width);
      }
#pragma unroll
    for (; width > 0; width /= 2) v[0] += __shfl_xor_sync(0xffffffffu, v[0], width);
    return v[0];
  }

  /// What a lane adds up for the rows of a stage.
  struct Sums {
    S32 value[mine], other[mine];  ///< other: odd elements (real), quantized values of the weight (int8)
    CERMET_DEVICE void clear() {
#pragma unroll
      for (int r = 0; r < mine; ++r) value[r] = other[r] = 0;
    }
  };

  /// State of a segment while its rows go by.
  struct Pass {
    const Params& p;
    const Segment& s;
    const Held& x;
    S32* partial;
    int a, warp_n, lane;  ///< of the warp: place along the row, and among those that take rows in turn
    float row_scale;      ///< of a row that was quantized here
    bool rehearsal;       ///< with whatever is in the stages, and no results
    float x_scales[C.blocked && !integer<C> ? S.held : 1];
  };

  /// Piece j of this warp, of row r of its rows in the stage, is at from(r, j). Scales of `matrix` 1, which is the
  /// other half of the first, follow its own.
  template <class From>
  static CERMET_DEVICE void multiply_rows(const Pass& pass, int row, [[maybe_unused]] int matrix, int first_piece,
                                          int last_piece, Sums& sums, S32* partial, From&& from) {
#pragma unroll
    for (int j = 0; j < S.held; ++j) {
      if (j < first_piece || j >= last_piece) continue;
      const int piece = j * S.along + pass.a;
      if (S.pieces % S.along != 0 && piece >= S.pieces) continue;
#pragma unroll
      for (int r = 0; r < mine; ++r) {
        const Piece w = from(r, j);
        if constexpr (ordered) {
          int32_t block = 0, ones = 0;
          multiply(w, pass.x.v[j], block, ones);
#pragma unroll
          for (int width = 4; width > 0; width /= 2) block += __shfl_xor_sync(0xffffffffu, block, width);
          const int slot = piece * 4 + pass.lane / 8, at = (row + r * S.side + pass.warp_n) % batch;
          if (pass.lane % 8 == 0 && slot < S.slots) partial[at * S.slots + slot] = block;
        } else if constexpr (C.blocked) {
          float even = 0, odd = 0;
          multiply(w, pass.x.v[j], even, odd);
          const int block = piece * 4 + pass.lane / 8,
                    column = min_of(pass.s.first + row + r * S.side + pass.warp_n, pass.s.end - 1);
          const int64_t at = pass.s.group * pass.p.w_scale_group_stride +
                             (column + matrix * pass.p.columns) / pass.p.w_scale_columns * pass.p.w_scale_stride;
          const bool inside = block * scale_block < C.k;
          const float w_scale =
              pass.p.w_scale == nullptr || !inside ? 1.0f : pass.p.w_scale[at + block * pass.p.w_scale_block];
          sums.value[r] += inside ? pass.x_scales[j] * w_scale * (even + odd) : 0.0f;
        } else {
          multiply(w, pass.x.v[j], sums.value[r], sums.other[r]);
        }
      }
    }
  }

  /// Passes the sums of a stage's rows, which start at `row` of the segment, to the reduction.
  static CERMET_DEVICE void hand_over(const Pass& pass, int row, Sums& sums, S32* partial) {
    if constexpr (!ordered) {
      if constexpr (!integer<C>)
#pragma unroll
        for (int r = 0; r < mine; ++r) sums.value[r] += sums.other[r];
      const int r = pass.lane / (32 / mine);
      S32* const to = partial + (row + r * S.side + pass.warp_n) % batch * S.slots + pass.a;
      const S32 sum = fold(sums.value);
      if (pass.lane % (32 / mine) == 0) *to = sum;
      if constexpr (E::column_sums) {
        const S32 ones = fold(sums.other);
        if (pass.lane % (32 / mine) == 0) to[batch * S.slots] = ones;
      }
    }
  }
};

}  // namespace cermet::gemv
