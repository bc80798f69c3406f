// What one warp does in attention of many queries: 16 or 32 rows against 16 to 64 keys at a time. Scores are kept times
// log2 e, except where operands change them: a bias near the largest float32 would overflow.
#pragma once

#include "kernel/cuda/device/attention/prefill_config.hpp"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/tile_rows.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/mma.cuh"

namespace cermet::attention {

template <PrefillConfig C, class Operands>
struct PrefillWarp {
  using T = Element<C.tile>;
  using Q = TileRows<C.padded(C.head_size), C.rows()>;
  using K = TileRows<C.padded(C.head_size), C.keys>;
  using V = TileRows<C.padded(C.values_in_keys ? C.head_size : C.value_size), C.keys>;
  static constexpr int columns = C.column_warps, keys = C.step, m_tiles = C.warp_rows / 16,
                       k_steps = (C.padded(C.head_size) + 15) / 16 / columns,
                       v_steps = (C.padded(C.value_size) + 15) / 16 / columns;
  static_assert(columns == 1 || m_tiles == 1);
  static constexpr bool split_queries = C.parts() == 2;
  using Scores = float[m_tiles][keys / 8][4];
  using Terms = typename Operands::Pair[m_tiles][2][keys / 8];

  int row_warp, column;          ///< column: of the warps that share rows
  int first_row;                 ///< of this warp, in the rows of the sequence
  int all_rows;                  ///< of the sequence
  int keys_end;                  ///< keys of the sequence
  Visible some, all;             ///< keys that some row of the warp sees; that all see
  float key_scale, value_scale;  ///< of this head
  float maximum[m_tiles][2],
      sum[m_tiles][2];  ///< of rows lane / 4 and lane / 4 + 8 of each 16; the sum of this lane's weights
  float output[m_tiles][2 * v_steps][4];

  static CERMET_DEVICE int lane() { return static_cast<int>(lane_index()); }
  static CERMET_DEVICE float log2_of(float x) { return Operands::changes ? x * log2_e : x; }
  static CERMET_DEVICE float natural_of(float x) { return Operands::changes ? x : x * ln_2; }
  CERMET_DEVICE int row_of(int m, int half) const { return first_row + 16 * m + 8 * half + lane() / 4; }
  /// Of row 0 of the sequence.
  CERMET_DEVICE int position() const { return keys_end - all_rows / C.group; }
  CERMET_DEVICE Visible seen_by(const Params& p, int row) const {
    return row < all_rows ? visible_keys(p, position() + row / C.group, keys_end) : Visible{0, 0};
  }

  /// Warps that share rows take every second 16 columns: bytes from the first one's to this one's.
  CERMET_DEVICE int column_bytes() const { return columns == 1 ? 0 : 32 * column; }
  CERMET_DEVICE int column_of(int n_tile) const { return 16 * (columns * (n_tile / 2) + column) + 8 * (n_tile % 2); }

  /// `warp`: of the block, whose rows begin with `row`.
  CERMET_DEVICE void begin(const Params& p, const Sequence& s, int kv_head, int row, int warp) {
    row_warp = C.row_warps == 1 ? 0 : warp / columns;
    column = columns == 1 ? 0 : warp % columns;
    row += row_warp * C.warp_rows;
    const auto scale_of = [&](const KeyList& list) {
      return C.widens() && !C.token_scales && list.scale ? list.scale[kv_head * list.scale_head_stride] : 1.0f;
    };
    key_scale = scale_of(p.k), value_scale = scale_of(p.v);
    first_row = row;
    all_rows = (s.end - s.begin) * C.group;
    keys_end = s.keys;
    const int used = min_of(C.warp_rows, all_rows - row);
    if (used > 0) {
      const Visible low = seen_by(p, row), high = seen_by(p, row + used - 1);
      some = {low.first, high.last};
      all = used == C.warp_rows ? Visible{high.first, low.last} : Visible{0, 0};
    } else {
      some = all = {0, 0};
    }
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) maximum[m][h] = -infinity(), sum[m][h] = 0.0f;
#pragma unroll
      for (int n = 0; n < 2 * v_steps; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) output[m][n][e] = 0.0f;
    }
  }

  /// Starts reading what operands do to the scores of the keys from `first` on.
  CERMET_DEVICE void load_terms(const Operands& operands, int kv_head, int first, Terms& terms) const {
    if constexpr (Operands::changes) {
#pragma unroll
      for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = min_of(row_of(m, h), all_rows - 1);
          operands.load(kv_head * C.group + row % C.group, row / C.group, first + 2 * (lane() % 4), keys_end,
                        terms[m][h]);
        }
    }
  }

  /// scores[m][n]: rows of m against keys 8 n + 2 (lane % 4) and the next, over this warp's columns. `queries`: of the
  /// block, whose second part follows the first; `tile`: its keys.
  CERMET_DEVICE void multiply_keys(const char* queries, const char* tile, Scores& scores) const {
    const int q_row = lane() % 16, q_swizzle = Q::swizzle(q_row) ^ lane() / 16 * 16 ^ column_bytes();
    const int k_row = lane() / 16 * 8 + lane() % 8,
              k_swizzle = K::swizzle(k_row) ^ lane() / 8 % 2 * 16 ^ column_bytes();
    queries += row_warp * C.warp_rows * Q::row_bytes;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int n = 0; n < keys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[m][n][e] = 0.0f;
#pragma unroll
    for (int step = 0; step < k_steps; ++step) {
      constexpr int chunks = 2 * columns;
      uint32_t q[m_tiles][4], rest[m_tiles][4];
#pragma unroll
      for (int m = 0; m < m_tiles; ++m) {
        const char* own = queries + Q::piece_offset(chunks * step) + (16 * m + q_row) * Q::row_bytes +
                          (Q::in_piece(chunks * step) ^ q_swizzle);
        ptx::ldmatrix_x4(q[m], own);
        if constexpr (split_queries) ptx::ldmatrix_x4(rest[m], own + Q::bytes);
      }
#pragma unroll
      for (int n = 0; n < keys / 8; n += 2) {
        uint32_t k[4];
        ptx::ldmatrix_x4(k, tile + K::piece_offset(chunks * step) + (8 * n + k_row) * K::row_bytes +
                                (K::in_piece(chunks * step) ^ k_swizzle));
        const uint32_t even[2] = {k[0], k[1]}, odd[2] = {k[2], k[3]};
#pragma unroll
        for (int m = 0; m < m_tiles; ++m) {
          ptx::mma_m16n8k16(scores[m][n], q[m], even, T{});
          ptx::mma_m16n8k16(scores[m][n + 1], q[m], odd, T{});
        }
        if constexpr (split_queries)
#pragma unroll
          for (int m = 0; m < m_tiles; ++m) {
            ptx::mma_m16n8k16(scores[m][n], rest[m], even, T{});
            ptx::mma_m16n8k16(scores[m][n + 1], rest[m], odd, T{});
          }
      }
    }
  }

  /// Adds what two warps have of the scores of their rows: each adds up one half of the keys and is given the other.
  /// `exchange`: of the block.
  template <class Team>
  CERMET_DEVICE void add_columns(Team team, char* exchange, Scores& scores) const {
    if constexpr (columns == 2) {
      constexpr int half = keys / 16;
      using Four = Vector<float, 4>;
      Four* const all = reinterpret_cast<Four*>(exchange) + row_warp * 64 * half + lane();
      Four *const own = all + column * 32 * half, *const other = all + (1 - column) * 32 * half;
      const bool upper = column != 0;
#pragma unroll
      for (int n = 0; n < half; ++n) {
        Four part;
#pragma unroll
        for (int e = 0; e < 4; ++e) part[e] = upper ? scores[0][n][e] : scores[0][half + n][e];
        own[32 * n] = part;
      }
      team.sync_part(row_warp, 64);
      Four sums[half];
#pragma unroll
      for (int n = 0; n < half; ++n) {
        sums[n] = other[32 * n];
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[n][e] += upper ? scores[0][half + n][e] : scores[0][n][e];
        other[32 * n] = sums[n];
      }
      team.sync_part(row_warp, 64);
#pragma unroll
      for (int n = 0; n < half; ++n) {
        const Four rest = own[32 * n];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          scores[0][n][e] = upper ? rest[e] : sums[n][e];
          scores[0][half + n][e] = upper ? sums[n][e] : rest[e];
        }
      }
    }
  }

  /// Scales of the tokens of keys 8 n + 2 (lane % 4) and the next.
  static CERMET_DEVICE Vector<float, 2> scales_of(const float* scales, int n) {
    return *reinterpret_cast<const Vector<float, 2>*>(scales + 8 * n + 2 * (lane() % 4));
  }
  static CERMET_DEVICE void scale_scores(const float* scales, Scores& scores) {
#pragma unroll
    for (int n = 0; n < keys / 8; ++n) {
      const auto scale = scales_of(scales, n);
#pragma unroll
      for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[m][n][e] *= scale[e % 2];
    }
  }

  /// Dot products become scores; -infinity where a row does not see the key. Returns the factor that they still lack.
  /// `first`: the first key.
  CERMET_DEVICE float finish_scores(const Params& p, float scale_log2, const Operands& operands, int kv_head, int first,
                                    const Terms& terms, Scores& scores) const {
    constexpr bool plain = C.plain && !Operands::changes;
    const float factor = plain ? scale_log2 * key_scale : 1.0f;
    const bool whole = first >= all.first && first + keys <= all.last;
    if (plain && whole) return factor;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = row_of(m, h);
        const Visible seen = seen_by(p, row);
        const float slope = !C.plain && p.alibi ? p.alibi[kv_head * C.group + row % C.group] : 0.0f;
#pragma unroll
        for (int n = 0; n < keys / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int key = first + 8 * n + 2 * (lane() % 4) + e;
            float& score = scores[m][n][2 * h + e];
            if (!plain) score *= key_scale;
            if (!C.plain)
              score = score_of(p, score, slope, position() + row / C.group - key) * (Operands::changes ? 1.0f : log2_e);
            else if (Operands::changes) score *= p.scale;
            score = operands.change(score, terms[m][h][n], e);
            if (!whole && (key < seen.first || key >= seen.last)) score = -infinity();
          }
      }
    return factor;
  }

  /// Scores, still without `factor`, become weights relative to the new maxima; sums and outputs follow.
  CERMET_DEVICE void update(Scores& scores, float factor) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
      float shrink[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float top = -infinity();
#pragma unroll
        for (int n = 0; n < keys / 8; ++n)
          top = fmaxf(
              top, fmaxf(scores[m][n][2 * h], scores[m][n][2 * h + 1]));  // leaves NaN out; its weight brings it back
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        top = fmaxf(maximum[m][h], top == -infinity() ? top : top * factor);
        const float base = top == -infinity() ? 0.0f : top;
        shrink[h] = maximum[m][h] == top ? 1.0f : exp2_approximate(log2_of(maximum[m][h] - base));
        maximum[m][h] = top;
        float added = 0.0f;
#pragma unroll
        for (int n = 0; n < keys / 8; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& weight = scores[m][n][2 * h + e];
            weight = exp2_approximate(Operands::changes ? (weight - base) * log2_e : fmaf(weight, factor, -base));
            added += weight;
          }
        sum[m][h] = fmaf(sum[m][h], shrink[h], added);
      }
      if (!__any_sync(0xffffffffu, shrink[0] != 1.0f || shrink[1] != 1.0f)) continue;
#pragma unroll
      for (int n = 0; n < 2 * v_steps; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) output[m][n][e] *= shrink[e / 2];
    }
  }

  /// output += weights * values of the same keys, in this warp's columns. `scales`: of their tokens.
  CERMET_DEVICE void multiply_values(const Scores& weights, const float* scales, const char* tile) {
    constexpr int chunks = 2 * columns;
    const int row = lane() / 8 % 2 * 8 + lane() % 8, swizzle = V::swizzle(row) ^ lane() / 16 * 16 ^ column_bytes();
#pragma unroll
    for (int n = 0; n < keys / 8; n += 2) {
      uint32_t main[m_tiles][4], rest[m_tiles][4];
#pragma unroll
      for (int m = 0; m < m_tiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float a = weights[m][n + i / 2][2 * (i % 2)], b = weights[m][n + i / 2][2 * (i % 2) + 1];
          if constexpr (C.token_scales) {
            const auto scale = scales_of(scales, n + i / 2);
            a *= scale[0], b *= scale[1];
          }
          main[m][i] = pack(a, b, T{});
          if constexpr (C.weight_parts == 2) rest[m][i] = pack_rest<T>(a, b, main[m][i]);
        }
#pragma unroll
      for (int d = 0; d < v_steps; d += 2) {  // two at a time, so that sums do not wait for each other
        uint32_t v[2][4];
#pragma unroll
        for (int i = 0; i < 2 && d + i < v_steps; ++i)
          ptx::ldmatrix_x4_trans(v[i], tile + V::piece_offset(chunks * (d + i)) + (8 * n + row) * V::row_bytes +
                                           (V::in_piece(chunks * (d + i)) ^ swizzle));
#pragma unroll
        for (int part = 0; part < C.weight_parts; ++part)
#pragma unroll
          for (int i = 0; i < 2 && d + i < v_steps; ++i) {
            const uint32_t even[2] = {v[i][0], v[i][1]}, odd[2] = {v[i][2], v[i][3]};
#pragma unroll
            for (int m = 0; m < m_tiles; ++m) {
              ptx::mma_m16n8k16(output[m][2 * (d + i)], part == 0 ? main[m] : rest[m], even, T{});
              ptx::mma_m16n8k16(output[m][2 * (d + i) + 1], part == 0 ? main[m] : rest[m], odd, T{});
            }
          }
      }
    }
  }

  CERMET_DEVICE void store(const Params& p, const Operands& operands, const Sequence& s, int kv_head,
                           bool broken) const {
    using Out = Element<C.out>;
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float total = sum[m][h] + __shfl_xor_sync(0xffffffffu, sum[m][h], 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const int row = row_of(m, h), token = s.begin + row / C.group, head = kv_head * C.group + row % C.group;
        if (row >= all_rows) continue;
        const Visible seen = seen_by(p, row);
        const Finish finish = finish_row(p.sinks, head, seen.first < seen.last && !is_empty(p, total),
                                         natural_of(maximum[m][h]), broken ? quiet_nan() : total);
        Out* to = static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride;
        const int first = 2 * (lane() % 4);
        const float factor = finish.factor * value_scale;
        float any = 0.0f;
#pragma unroll
        for (int n = 0; n < 2 * v_steps; ++n) {
          const float a = output[m][n][2 * h] * factor, b = output[m][n][2 * h + 1] * factor;
          const int d = column_of(n) + first;
          if (column_of(n) >= C.value_size) continue;
          any += a - a + (b - b);
          const Vector<Out, 2> pair{from_float<Out>(a), from_float<Out>(b)};
          if (p.aligned_out) *reinterpret_cast<Vector<Out, 2>*>(to + d) = pair;
          else to[d] = pair[0], to[d + 1] = pair[1];
        }
        if (p.lse && column == 0 && lane() % 4 == 0) p.lse[head * p.lse_head_stride + token] = finish.lse;
        if (any == 0.0f || finish.factor - finish.factor != 0.0f) continue;  // nothing is wrong, or everything is NaN
        const ExactRow exact{s.index,
                             token,
                             head,
                             kv_head,
                             position() + row / C.group,
                             s.key_begin,
                             s.keys,
                             natural_of(maximum[m][h]),
                             finish.factor};
#pragma unroll 1
        for (int i = 0; i < 4 * v_steps; ++i)
          if (column_of(i / 2) < C.value_size)
            repair<ExactConfig{C.head_size, C.block, C.q, C.kv, C.out}>(p, exact, to, column_of(i / 2) + first + i % 2,
                                                                        operands);
      }
  }
};

}  // namespace cermet::attention
