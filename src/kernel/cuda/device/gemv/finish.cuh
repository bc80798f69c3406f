// From the sums of a batch of rows to results, column by column.
#pragma once

#include "kernel/cuda/device/gemv/row_sums.cuh"

namespace cermet::gemv {

/// Finishes rows of stages, each of which is a column. What it holds is for the row of a batch that the thread
/// finishes.
template <Config C, class E, class Team>
struct ColumnFinish : RowSums<C, E> {
  using Base = RowSums<C, E>;
  using Base::ordered, Base::S, Base::sums;
  using typename Base::Pass;
  using typename Base::S32;
  using typename Base::Segment;
  using Factors = epilogue::ValuesOf<E>;
  /// The thread that finishes a row of a batch is the first of `lanes`.
  static constexpr int lanes = ordered ? 1 : S.along;

  Factors factors;
  float column_factors[C.compact ? 2 : 1];  ///< of the sums of a compact row, one of each matrix

  /// Before x is loaded.
  CERMET_DEVICE ColumnFinish(const Params&, const Segment&) {}
  /// Rows of stages that a segment takes.
  static CERMET_DEVICE int rows_of(const Segment& s) { return s.end - s.first; }
  /// The column in a row of the segment's stages; past the end, any of the segment's.
  static CERMET_DEVICE int column_of(const Segment& s, int row) { return min_of(s.first + row, s.end - 1); }
  /// What the first batch needs, well before its sums are there.
  CERMET_DEVICE void load(const Params& p, const Segment& s) {
    const int own = static_cast<int>(Team::rank()) / lanes;
    if (static_cast<int>(Team::rank()) % lanes != 0 || own >= min_of(batch, s.end - s.first)) return;
    epilogue::load_row<E>(p.extra, s.row, s.group, factors);
    load_place(p, s, s.first + own);
  }
  CERMET_DEVICE void load_place(const Params& p, const Segment& s, int column) {
    epilogue::load_place<E>(p.extra, s.row, column, s.group, factors);
    if constexpr (C.compact) {
      column_factors[0] = p.w_factors[column];
      if constexpr (C.dual) column_factors[1] = p.w_up_factors[column];
    }
  }

  /// Adds up the rows of a batch, which begins with row `row` of the segment, stores them and loads what the next batch
  /// needs.
  CERMET_DEVICE void finish(const Pass& pass, int row, const S32* partial) {
    Team::sync_part(0, 32 * S.warps);
    const int thread = static_cast<int>(Team::rank()), r = thread / lanes, q = thread % lanes;
    if (thread >= batch * lanes) return;
    typename SumOf<integer<C> && !ordered>::type value[Base::sums];
#pragma unroll
    for (int m = 0; m < sums; ++m) {
      const S32* const own = partial + (m * batch + r) * S.slots;
      if constexpr (ordered) {
        value[m] = add_blocks(pass, min_of(pass.s.first + row + r, pass.s.end - 1) + m * pass.p.columns, own);
      } else {
        value[m] = own[q];
#pragma unroll
        for (int width = lanes / 2; width > 0; width /= 2) value[m] += __shfl_xor_sync(0xffffffffu, value[m], width);
      }
    }
    if (q == 0 && r < pass.s.end - pass.s.first - row) {
      const int column = pass.s.first + row + r;
      if constexpr (C.compact)
#pragma unroll
        for (int m = 0; m < sums; ++m) value[m] *= column_factors[m];
      store(pass, column, value, factors);
      if (column + batch < pass.s.end) load_place(pass.p, pass.s, column + batch);
    }
  }

  /// The scaled sums of a column's blocks, in order; no step may be contracted with another, so that int8 gives every
  /// kernel's bits.
  static CERMET_DEVICE float add_blocks(const Pass& pass, int column, const S32* own) {
    const Params& p = pass.p;
    const int64_t at = pass.s.group * p.w_scale_group_stride + column / p.w_scale_columns * p.w_scale_stride;
    float total = 0;
    for (int block = 0; block < S.slots; ++block) {
      const float w_scale = p.w_scale == nullptr ? 1.0f : p.w_scale[at + block * p.w_scale_block];
      const float row_scale =
          p.x_scale == nullptr ? 1.0f : p.x_scale[pass.s.row * p.x_scale_stride + block * p.x_scale_block];
      const float term = __fmul_rn(row_scale, __fmul_rn(w_scale, static_cast<float>(own[block])));
      total = block == 0 ? term : __fadd_rn(total, term);
    }
    return total;
  }

  template <class Value>
  static CERMET_DEVICE void store(const Pass& pass, int column, const Value (&value)[sums], const Factors& factors) {
    store_one<E>(pass, pass.p.y, pass.s.row * pass.p.y_stride + column, value, factors);
    if constexpr (epilogue::gives_two<E>)
      store_one<typename E::Also>(pass, pass.p.also, pass.s.row * pass.p.also_stride + column, value, factors);
  }
  template <class Result, class Value>
  static CERMET_DEVICE void store_one(const Pass& pass, void* to, int64_t at, const Value (&value)[sums],
                                      const Factors& factors) {
    using Out = Element<Result::out>;
    Out& y = static_cast<Out*>(to)[at];
    if constexpr (sums == 2 && C.prologue.quantize)
      y = epilogue::rounded<Out>(Result::value(value[0], value[1], pass.row_scale, factors));
    else if constexpr (C.prologue.quantize)
      y = epilogue::rounded<Out>(Result::value(value[0], pass.row_scale, factors));
    else if constexpr (sums == 2) y = epilogue::rounded<Out>(Result::value(value[0], value[1], factors));
    else y = epilogue::rounded<Out>(Result::value(value[0], factors));
  }
};

}  // namespace cermet::gemv
