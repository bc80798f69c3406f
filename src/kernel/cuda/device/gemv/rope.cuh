// A GEMV that makes queries, keys and values, with rope_and_cache behind it (tile/rotation.cuh): its columns are
// counted in pairs, and its stages hold both columns of each.
#pragma once

#include "kernel/cuda/device/gemv/prologue.cuh"
#include "kernel/cuda/device/tile/rotation.cuh"

namespace cermet::gemv {

/// Columns count pairs of columns.
using RopeParams = rotation::WithOperands<Params>;

/// How pairs lie in stages of `rows` rows: the first columns of some pairs, then their second ones; where a stage is
/// one row, each pair takes two.
struct PairStages {
  int rows;
  constexpr int pairs() const { return rows == 1 ? 1 : rows / 2; }
  /// Rows that `count` pairs take, in whole stages.
  constexpr int rows_of(int count) const { return (count + pairs() - 1) / pairs() * 2 * pairs(); }
  /// The pair in a row, and which of its columns.
  constexpr int pair_of(int row) const { return row / (2 * pairs()) * pairs() + row % pairs(); }
  constexpr int second_of(int row) const { return row / pairs() % 2; }
  /// The row of the first column of a pair; the second one is `pairs()` later.
  constexpr int row_of(int pair) const { return pair / pairs() * 2 * pairs() + pair % pairs(); }
};

/// Pairs of columns in stages; see Columns.
template <Config C, class E, rotation::Config R, class Team>
struct ColumnPairs : Products<C, E> {
  using Base = Products<C, E>;
  using Base::S;
  using typename Base::Pass;
  using typename Base::S32;
  using End = rotation::PairEnd<R, E, C.prologue.quantize, C.compact>;
  using Order = rotation::PairOrder<R>;
  static constexpr PairStages stages{S.stage_rows};
  static constexpr int lanes = S.split_k, batch_pairs = batch / 2;
  static_assert(!C.blocked && !C.dual && Base::sums == 1);

  typename End::Token token;
  typename End::Operands operands;

  static CERMET_DEVICE const RopeParams& params(const Params& p) { return static_cast<const RopeParams&>(p); }
  static CERMET_DEVICE int rows_of(const Segment& s) { return stages.rows_of(s.end - s.first); }
  static CERMET_DEVICE int column_of(const Segment& s, int row) {
    return Order::column(min_of(s.first + stages.pair_of(row), s.end - 1), stages.second_of(row));
  }

#if CERMET_ARCH >= 900
  static CERMET_DEVICE int steps(const WeightRows& w) {
    return stages.rows_of(w.end - w.first) / S.stage_rows * S.chunks;
  }
  template <class Pipeline>
  static CERMET_DEVICE void fill(Pipeline& pipeline, const WeightRows& w, int index, uint64_t policy) {
    constexpr int pairs = stages.pairs(), halves = S.stage_rows == 1 ? 1 : 2;
    const int chunk = S.chunks == 1 ? 0 : index % S.chunks,
              row = (S.chunks == 1 ? index : index / S.chunks) * S.stage_rows;
    const int pair = w.first + stages.pair_of(row), count = min_of(pairs, w.end - pair),
              bytes = min_of(S.chunk, S.row_bytes - chunk * S.chunk);
    const int64_t stride = w.stride[0];
    const char* const from = w.matrix[0] + chunk * S.chunk;
    char* const to = pipeline.next();  // [halves][pairs][chunk]
    uint64_t* const full = &pipeline.full[pipeline.stage];
    pipeline.wait_for_room();
    const auto copy = [&](auto&& copy_rows) {
#pragma unroll
      for (int half = 0; half < halves; ++half) {
        const int second = halves == 2 ? half : stages.second_of(row), first = Order::column(pair, second);
        char* const part = to + half * pairs * S.chunk;
        if (S.chunks == 1 && Order::column(pair + count - 1, second) == first + count - 1) {
          copy_rows(part, from + first * stride, count);
        } else {
#pragma unroll 1
          for (int r = 0; r < count; ++r)
            copy_rows(part + r * S.chunk, from + Order::column(pair + r, second) * stride, 1);
        }
      }
    };
    if (((reinterpret_cast<uintptr_t>(from) | static_cast<uintptr_t>(stride)) & 15) == 0) {
      if (ptx::elect_one()) {
        ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(halves * count * bytes));
        copy([&](char* part, const char* rows, int length) {
          if (length > 1 && stride != S.row_bytes) {
#pragma unroll 1
            for (int r = 0; r < length; ++r) ptx::bulk_copy(part + r * S.chunk, rows + r * stride, bytes, full, policy);
          } else {
            ptx::bulk_copy(part, rows, length * bytes, full, policy);
          }
        });
      }
    } else {
      copy([&](char* part, const char* rows, int length) {
        copy_elements<Base::element>(part, S.chunk, rows, stride, length, bytes);
      });
      __syncwarp();
      if (lane_index() == 0) ptx::mbarrier_arrive(full);
    }
    pipeline.advance();
  }
#endif

  static CERMET_DEVICE bool is_mine(const Segment& s, int pair) {
    return static_cast<int>(Team::rank()) % lanes == 0 && static_cast<int>(Team::rank()) < batch_pairs * lanes &&
           pair < s.end;
  }
  CERMET_DEVICE ColumnPairs(const Params& p, const Segment& s) {
    if (is_mine(s, s.first)) token = End::token(params(p), s.row);
  }
  CERMET_DEVICE void load(const Params& p, const Segment& s) {
    const int pair = s.first + static_cast<int>(Team::rank()) / lanes;
    if (!is_mine(s, pair)) return;
    End::load_row(params(p), s.row, operands);
    End::load_place(params(p), s.row, pair, token, operands);
  }
  CERMET_DEVICE void finish(const Pass& pass, int row, const S32* partial) {
    Team::sync_part(0, 32 * S.warps);
    const int thread = static_cast<int>(Team::rank()), of_batch = thread / lanes, q = thread % lanes;
    if (thread >= max_of(32, batch_pairs * lanes)) return;  // whole warps add up
    const S32* const own = partial + stages.row_of(min_of(of_batch, batch_pairs - 1)) * S.partials + q;
    S32 sum[2]{own[0], own[stages.pairs() * S.partials]};
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

/// A variant of Gemv.
template <rotation::Config R>
struct Rope : Plain {
  using Params = RopeParams;
  template <Config C, class E, class Team>
  using Columns = ColumnPairs<C, E, R, Team>;
};

}  // namespace cermet::gemv
