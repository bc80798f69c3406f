// Which results an item of a GEMV computes, and a warp's products of a stage of weights with its row of x.
#pragma once

#include "kernel/cuda/device/gemv/row.cuh"

namespace cermet::gemv {

/// Columns [first, end) of row `row` of y, which are products of row x_row of x with the weight of `group`.
struct Segment {
  int row = 0, group = 0, first = 0, end = 0;
  int x_row = 0;
};

/// The results of an item: where they begin, in row-major order, and how many they are.
struct Share {
  int row = 0, column = 0, count = 0;

  Share() = default;
  CERMET_DEVICE Share(const Params& p, uint32_t item) {
    const int64_t begin = share_begin(p.share, p.remainder, p.inverse, item);
    count = static_cast<int>(share_begin(p.share, p.remainder, p.inverse, item + 1) - begin);
    int64_t left = begin;
    for (; left >= p.columns; left -= p.columns) ++row;  // rows are few
    column = static_cast<int>(left);
  }
  CERMET_DEVICE bool is_first() const { return row == 0 && column == 0; }
  /// Keeps the compiler from computing it after the wait for earlier launches.
  CERMET_DEVICE void settle() const { asm volatile("" ::"r"(row), "r"(column), "r"(count)); }
  CERMET_DEVICE Segment first_segment(const Params& p) const {
    return {row, 0, column, min_of(p.columns, column + count), row};
  }
  /// Calls body(segment) for each, with the weights that `rows` finds where there are several. Whole warps call.
  template <class Rows, class Body>
  CERMET_DEVICE void for_segments(const Params& p, const Rows& rows, Body&& body) const {
    Share at = *this;
    while (at.count > 0) {
      Segment s = at.first_segment(p);
      at.row = at.row + 1, at.column = 0, at.count = at.count - (s.end - s.first);
      if constexpr (requires { rows.find(p, s); })
        if (!rows.find(p, s)) continue;
      body(s);
    }
  }
};

/// The shape of a kernel, and a warp's products of a stage. E: the epilogue, see tile/epilogue.cuh.
template <Config C, class E>
struct Products {
  using S32 = Sum<C.w>;
  using Arithmetic = Dot<C.w, E::column_sums>;
  static constexpr int element = static_cast<int>(sizeof(Element<C.w>));
  static constexpr bool ordered = integer<C.w> && C.blocked;  ///< scaled sums of blocks are added in order
  static constexpr int matrices = C.dual ? 2 : 1;
  static constexpr int sums =
      matrices + (E::column_sums ? 1 : 0);  ///< of a result; the last is that of the weight's quantized values
  static constexpr Shape S = shape_of(C, element, ordered, sums);
  static constexpr int warp_rows = S.stage_rows / S.sets;  ///< rows of a stage that a warp takes
  using Row = LaneRow<C.w, S.warp_pieces>;
  static_assert(!C.stream || S.row_bytes % 16 == 0);
  static_assert(!C.compact || (C.stream && C.w == DType::bf16 && C.k % compact_piece_elements == 0));
  static_assert(!(E::column_sums && (C.dual || C.blocked)));

  /// A segment while its rows go by.
  struct Pass {
    const Params& p;
    const Segment& s;
    const Row& x;
    S32* partial;
    int a, set, lane;  ///< a: of the warp among the split_k of its set
    float row_scale;   ///< of a row that was quantized here
    bool dry_run;      ///< with whatever is in the stages, and no results
    float x_scales[C.blocked && !integer<C.w> ? S.warp_pieces : 1];
    /// The row of the segment's stages that is row r of the warp's in the stage from `row` on.
    CERMET_DEVICE int row_of(int row, int r) const { return row + r * S.sets + set; }
  };

  /// What a lane adds up for the rows of a stage.
  struct Sums {
    S32 value[warp_rows], other[warp_rows];  ///< other: odd elements (real), quantized values of the weight (int8)
    CERMET_DEVICE void clear() {
#pragma unroll
      for (int r = 0; r < warp_rows; ++r) value[r] = other[r] = 0;
    }
  };

  /// Adds pieces [first, last) of the warp: piece j of its row r in the stage is piece_at(r, j). Scales of `matrix` 1,
  /// which is the other half of the first, follow its own.
  template <class PieceAt>
  static CERMET_DEVICE void multiply_rows(const Pass& pass, int row, [[maybe_unused]] int matrix, int first, int last,
                                          Sums& sums, S32* partial, PieceAt&& piece_at) {
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j) {
      if (j < first || j >= last) continue;
      const int piece = j * S.split_k + pass.a;
      if (S.pieces % S.split_k != 0 && piece >= S.pieces) continue;
#pragma unroll
      for (int r = 0; r < warp_rows; ++r) {
        const Piece w = piece_at(r, j);
        if constexpr (ordered) {
          int32_t block = 0, ones = 0;
          Arithmetic::multiply(w, pass.x.v[j], block, ones);
#pragma unroll
          for (int width = 4; width > 0; width /= 2) block += __shfl_xor_sync(0xffffffffu, block, width);
          const int slot = piece * 4 + pass.lane / 8, at = pass.row_of(row, r) % batch;
          if (pass.lane % 8 == 0 && slot < S.partials) partial[at * S.partials + slot] = block;
        } else if constexpr (C.blocked) {
          float even = 0, odd = 0;
          Arithmetic::multiply(w, pass.x.v[j], even, odd);
          const int block = piece * 4 + pass.lane / 8,
                    column = min_of(pass.s.first + pass.row_of(row, r), pass.s.end - 1);
          const int64_t at = pass.s.group * pass.p.w_scale_group_stride +
                             (column + matrix * pass.p.columns) / pass.p.w_scale_columns * pass.p.w_scale_stride;
          const bool inside = block * scale_block < C.k;
          const float w_scale =
              pass.p.w_scale == nullptr || !inside ? 1.0f : pass.p.w_scale[at + block * pass.p.w_scale_block];
          sums.value[r] += inside ? pass.x_scales[j] * w_scale * (even + odd) : 0.0f;
        } else {
          Arithmetic::multiply(w, pass.x.v[j], sums.value[r], sums.other[r]);
        }
      }
    }
  }

  /// The warp's sums of a stage's rows, which start at `row` of the segment, to partial [batch][partials].
  static CERMET_DEVICE void store_partials(const Pass& pass, int row, Sums& sums, S32* partial) {
    if constexpr (!ordered) {
      if constexpr (!integer<C.w>)
#pragma unroll
        for (int r = 0; r < warp_rows; ++r) sums.value[r] += sums.other[r];
      const int r = pass.lane / (32 / warp_rows);
      S32* const to = partial + pass.row_of(row, r) % batch * S.partials + pass.a;
      const S32 sum = Arithmetic::reduce(sums.value);
      if (pass.lane % (32 / warp_rows) == 0) *to = sum;
      if constexpr (E::column_sums) {
        const S32 ones = Arithmetic::reduce(sums.other);
        if (pass.lane % (32 / warp_rows) == 0) to[batch * S.partials] = ones;
      }
    }
  }

  /// The scaled sums of a column's blocks, in order; no step may be contracted with another, so that int8 gives every
  /// kernel's bits.
  static CERMET_DEVICE float add_blocks(const Pass& pass, int column, const S32* own) {
    const Params& p = pass.p;
    const int64_t at = pass.s.group * p.w_scale_group_stride + column / p.w_scale_columns * p.w_scale_stride;
    float total = 0;
    for (int block = 0; block < S.partials; ++block) {
      const float w_scale = p.w_scale == nullptr ? 1.0f : p.w_scale[at + block * p.w_scale_block];
      const float row_scale =
          p.x_scale == nullptr ? 1.0f : p.x_scale[pass.s.row * p.x_scale_stride + block * p.x_scale_block];
      const float term = __fmul_rn(row_scale, __fmul_rn(w_scale, static_cast<float>(own[block])));
      total = block == 0 ? term : __fadd_rn(total, term);
    }
    return total;
  }
};

}  // namespace cermet::gemv
