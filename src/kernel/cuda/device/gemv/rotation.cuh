// A GEMV that makes queries, keys and values, with rope_and_cache behind it (tile/rotation.cuh): its columns are
// counted in pairs, and its stages hold both columns of each.
#pragma once

#include "kernel/cuda/device/gemv/finish.cuh"
#include "kernel/cuda/device/gemv/row_sums.cuh"
#include "kernel/cuda/device/tile/rotation.cuh"

namespace cermet::gemv {

/// Finishes rows of stages that hold pairs; see ColumnFinish.
template <Config C, class E, class Team>
struct PairFinish : RowSums<C, E> {
  using Base = RowSums<C, E>;
  using Base::S;
  using typename Base::Pass;
  using typename Base::S32;
  using typename Base::Segment;
  using End = rotation::PairEnd<C.rotation, E, C.prologue.quantize, C.compact>;
  using Order = rotation::PairOrder<C.rotation>;
  static constexpr PairStages stages{S.stage_rows};
  static constexpr int lanes = S.along, batch_pairs = batch / 2;
  static_assert(!C.blocked && !C.dual && !C.grouped && Base::sums == 1);

  typename End::Token token;
  typename End::Operands operands;

  static CERMET_DEVICE const RotatedParams& params(const gemv::Params& p) {
    return static_cast<const RotatedParams&>(p);
  }
  static CERMET_DEVICE int rows_of(const Segment& s) { return stages.rows_of(s.end - s.first); }
  static CERMET_DEVICE int column_of(const Segment& s, int row) {
    return Order::column(min_of(s.first + stages.pair_of(row), s.end - 1), stages.second_of(row));
  }
  static CERMET_DEVICE bool is_mine(const Segment& s, int pair) {
    return static_cast<int>(Team::rank()) % lanes == 0 && static_cast<int>(Team::rank()) < batch_pairs * lanes &&
           pair < s.end;
  }

  CERMET_DEVICE PairFinish(const gemv::Params& p, const Segment& s) {
    if (is_mine(s, s.first)) token = End::token(params(p), s.row);
  }
  CERMET_DEVICE void load(const gemv::Params& p, const Segment& s) {
    const int pair = s.first + static_cast<int>(Team::rank()) / lanes;
    if (!is_mine(s, pair)) return;
    End::load_row(params(p), s.row, operands);
    End::load_place(params(p), s.row, pair, token, operands);
  }
  CERMET_DEVICE void finish(const Pass& pass, int row, const S32* partial) {
    Team::sync_part(0, 32 * S.warps);
    const int thread = static_cast<int>(Team::rank()), of_batch = thread / lanes, q = thread % lanes;
    if (thread >= max_of(32, batch_pairs * lanes)) return;  // whole warps add up
    const S32* const own = partial + stages.row_of(min_of(of_batch, batch_pairs - 1)) * S.slots + q;
    S32 sum[2]{own[0], own[stages.pairs() * S.slots]};
#pragma unroll
    for (int width = lanes / 2; width > 0; width /= 2)
#pragma unroll
      for (int i = 0; i < 2; ++i) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], width);
    const int pair = pass.s.first + row / 2 + of_batch;
    if (!is_mine(pass.s, pair)) return;
    End::store(params(pass.p), pass.s.row, pair, sum, pass.row_scale, token, operands);
    if (pair + batch_pairs < pass.s.end)
      End::load_place(params(pass.p), pass.s.row, pair + batch_pairs, token, operands);
  }
};

template <Config C, class E, class Team, bool Rotates = C.rotation.given>
struct FinishOf {
  using type = ColumnFinish<C, E, Team>;
};
template <Config C, class E, class Team>
struct FinishOf<C, E, Team, true> {
  using type = PairFinish<C, E, Team>;
};

}  // namespace cermet::gemv
