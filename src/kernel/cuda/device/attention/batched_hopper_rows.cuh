// What a warpgroup does with its 64 rows in attention over a batch of sequences: products with tiles of keys and
// values, and weights in between. A weight is multiplied as two 16-bit parts, which leaves it 16 (bf16) or 22 (f16)
// significant bits.
#pragma once

#include "kernel/cuda/device/attention/batched_hopper.hpp"
#include "kernel/cuda/device/attention/batched_scores.cuh"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/score_fragment.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

namespace cermet::attention {

template <BatchedHopperConfig C, ScoreConfig S>
struct BatchedHopperRows {
  using Operands = BatchedScores<S>;
  using T = Element<C.type>;
  using Out = Element<C.out>;
  static constexpr int threads = 128, rows = 64, keys = C.keys, steps = keys / 16, tile_bytes = 4 * keys * C.head_size;
  static constexpr bool single = C.resident && C.stages == 1;
  static_assert(C.resident ? C.stages <= 2 : C.stages >= 2 && C.row_tiles == 1);
  using Q = TileRows<C.head_size, rows>;
  using K = TileRows<C.head_size, keys>;
  using Scores = float[keys / 2];  ///< of a thread: score_fragment.cuh
  using Terms = typename Operands::Pair[2][keys / 8];
  using Weights = uint32_t[2][steps][4];  ///< in two parts, as fragments of the left operand

  struct State {
    float maximum[2],
        sum[2];  ///< the maximum times log2 e, except where operands change scores; the sum of this lane's weights
    float output[C.head_size / 2];
  };
  /// What does not change from tile to tile.
  struct Rows {
    int first, all, position, keys_end;  ///< first row of this warp in those of the sequence, which has `all`; position
                                         ///< of row 0; keys of the sequence
    Visible seen_by_all;                 ///< keys that all 64 rows see
    CERMET_DEVICE int row(int half) const { return first + 8 * half + static_cast<int>(lane_index() / 4); }
    CERMET_DEVICE Visible seen(const attention::Params& p, int row) const {
      return row < all ? visible_keys(p, position + row / C.group, keys_end) : Visible{0, 0};
    }
  };

  static CERMET_DEVICE float log2_of(float x) { return Operands::changes ? x * log2_e : x; }
  static CERMET_DEVICE float natural_of(float x) { return Operands::changes ? x : x * ln_2; }

#if CERMET_ARCH >= 900
  /// scores = queries * keys.
  static CERMET_DEVICE void multiply_keys(const char* queries, const char* tile, Scores& scores) {
    ptx::wgmma_fence();
#pragma unroll
    for (int piece = 0; piece < C.head_size / 64; ++piece) {
      const uint64_t a = ptx::wgmma_descriptor(queries + piece * (rows * 128)),
                     b = ptx::wgmma_descriptor(tile + piece * (keys * 128));
#pragma unroll
      for (int step = 0; step < 4; ++step)
        ptx::Wgmma<keys, T, T>::multiply(scores, a + 2 * step, b + 2 * step, piece + step > 0);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (float& score : scores) ptx::wgmma_touch(score);
  }

  /// output += weights * values.
  static CERMET_DEVICE void multiply_values(const Weights& weights, const char* tile,
                                            float (&output)[C.head_size / 2]) {
    const uint64_t b = ptx::wgmma_descriptor_columns(tile, keys * 128);
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int step = 0; step < steps; ++step)
        ptx::WgmmaRows<C.head_size, T>::multiply(output, weights[part][step], b + 128 * step);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (float& x : output) ptx::wgmma_touch(x);
  }

  /// A branch of its own: within the loop over scores it becomes predicates, which cost as much where every key is
  /// seen.
  static CERMET_DEVICE void hide_unseen(const attention::Params& p, const Rows& own, int first, Scores& scores) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const Visible seen = own.seen(p, own.row(h));
      for_scores(scores, h, first, [&](float& score, int, int, int key) {
        if (key < seen.first || key >= seen.last) score = -infinity();
      });
    }
  }

  /// Dot products become scores, -infinity where a row does not see the key. Returns the factor that they still lack to
  /// be times log2 e. `first`: the first key.
  static CERMET_DEVICE float finish_scores(const BatchedParams& params, const Operands& operands, const Rows& own,
                                           int kv_head, int first, const Terms& terms, Scores& scores) {
    const attention::Params& p = params.a;
    constexpr bool plain = C.plain && !Operands::changes;
    const float factor = plain ? p.scale * log2_e : 1.0f;
    const bool whole = first >= own.seen_by_all.first && first + keys <= own.seen_by_all.last;
    if (plain && whole) return factor;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = own.row(h);
      const float slope = !C.plain && p.alibi ? p.alibi[kv_head * C.group + row % C.group] : 0.0f;
      for_scores(scores, h, first, [&](float& score, int j, int i, int key) {
        if (!C.plain)
          score = score_of(p, score, slope, own.position + row / C.group - key) * (Operands::changes ? 1.0f : log2_e);
        else if (Operands::changes) score *= p.scale;
        score = operands.change(score, terms[h][j], i);
      });
    }
    if (!whole) hide_unseen(p, own, first, scores);
    return factor;
  }

  /// Scores, still without `factor`, become weights relative to the new maxima; sums and outputs follow.
  static CERMET_DEVICE void update(State& state, float factor, Scores& scores) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = largest_score(scores, h);
      top = top == -infinity() ? top : top * factor;
      float shrink = 1.0f;
      if constexpr (!single) {
        top = fmaxf(state.maximum[h], top);
        const float base = top == -infinity() ? 0.0f : top;
        shrink = state.maximum[h] == top ? 1.0f : exp2_approximate(log2_of(state.maximum[h] - base));
      }
      const float base = top == -infinity() ? 0.0f : log2_of(top), scale = log2_of(factor);
      state.maximum[h] = top;
      const float added = to_weights(scores, h, scale, base);
      if constexpr (single) {
        state.sum[h] = added;
      } else {
        state.sum[h] = fmaf(state.sum[h], shrink, added);
        if (__any_sync(0xffffffffu, shrink != 1.0f)) {
#pragma unroll
          for (int d = 0; d < C.head_size / 8; ++d)
            state.output[4 * d + 2 * h] *= shrink, state.output[4 * d + 2 * h + 1] *= shrink;
        }
      }
    }
  }

  static CERMET_DEVICE void pack_weights(const Scores& scores, Weights& weights) {
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float a = scores[8 * step + 2 * i], b = scores[8 * step + 2 * i + 1];
        weights[0][step][i] = pack(a, b, T{});
        weights[1][step][i] = pack_rest<T>(a, b, weights[0][step][i]);
      }
  }

  /// `staging`: of this warp's 16 rows, in the tile of queries, which are no longer read.
  static CERMET_DEVICE void store(const attention::Params& p, const Operands& operands, const Rows& own, int kv_head,
                                  const State& state, char* staging) {
    const int lane = static_cast<int>(lane_index()), first = 2 * (lane % 4);
    const auto place = [&](int row) {
      return static_cast<Out*>(p.o) + row / C.group * p.o_token_stride +
             (kv_head * C.group + row % C.group) * p.o_head_stride;
    };
    constexpr bool staged = sizeof(Out) == 2;
    Finish finish[2];
    bool wrong[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const int row = own.row(h);
      const Visible seen = own.seen(p, row);
      finish[h] = finish_row(p.sinks, kv_head * C.group + row % C.group, seen.first < seen.last && !is_empty(p, total),
                             natural_of(state.maximum[h]), total);
      float any = 0.0f;
#pragma unroll
      for (int d = 0; d < C.head_size / 8; ++d) {
        const float a = state.output[4 * d + 2 * h] * finish[h].factor,
                    b = state.output[4 * d + 2 * h + 1] * finish[h].factor;
        any = fmaf(a, 0.0f, fmaf(b, 0.0f, any));  // 0 unless something is not finite
        const Vector<Out, 2> pair{from_float<Out>(a), from_float<Out>(b)};
        if constexpr (staged)
          *reinterpret_cast<Vector<Out, 2>*>(staging + Q::offset(8 * h + lane / 4, d) + 2 * first) = pair;
        else if (row < own.all) place(row)[8 * d + first] = pair[0], place(row)[8 * d + first + 1] = pair[1];
      }
      wrong[h] = row < own.all && any != any && finish[h].factor - finish[h].factor == 0.0f;
      if (p.lse && row < own.all && lane % 4 == 0)
        p.lse[(kv_head * C.group + row % C.group) * p.lse_head_stride + row / C.group] = finish[h].lse;
    }
    if constexpr (staged) {
      constexpr int chunks = C.head_size / 8;
      __syncwarp();
#pragma unroll
      for (int i = lane; i < 16 * chunks; i += 32) {
        const int row = own.first + i / chunks;
        if (row >= own.all) continue;
        const auto whole = *reinterpret_cast<const Vector<Out, 8>*>(staging + Q::offset(i / chunks, i % chunks));
        Out* const to = place(row) + i % chunks * 8;
        if (p.aligned_out) *reinterpret_cast<Vector<Out, 8>*>(to) = whole;
        else
#pragma unroll
          for (int e = 0; e < 8; ++e) to[e] = whole[e];
      }
      __syncwarp();
    }
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      if (!(h == 0 ? wrong[0] : wrong[1])) continue;
      const int row = own.row(h), token = row / C.group, head = kv_head * C.group + row % C.group;
      const float maximum = natural_of(h == 0 ? state.maximum[0] : state.maximum[1]),
                  factor = h == 0 ? finish[0].factor : finish[1].factor;
      const ExactRow exact{0, token, head, kv_head, own.position + token, 0, own.keys_end, maximum, factor};
#pragma unroll 1
      for (int i = 0; i < C.head_size / 4; ++i)
        repair<ExactConfig{C.head_size, 0, C.type, C.type, C.out}>(p, exact, place(row), i / 2 * 8 + first + i % 2,
                                                                   operands);
    }
  }
#endif
};

}  // namespace cermet::attention
