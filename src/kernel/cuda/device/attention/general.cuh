// Attention of any head size, element type and key layout in float32: a tile of rows (queries times the heads that
// share a key-value head) against tiles of 32 keys with online softmax. A lane holds one key while scores are computed
// and every 32nd element of the values while they are summed.
#pragma once

#include "kernel/cuda/device/attention/general_shape.hpp"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::attention {

/// Where elements of a row are, for sequences one after the other: side by side.
struct PlainRows : PlainScores {
  static constexpr bool steps = false;
  static CERMET_DEVICE int64_t q_step() { return 1; }
  static CERMET_DEVICE int64_t k_step() { return 1; }
  static CERMET_DEVICE int64_t v_step() { return 1; }
};

template <GeneralConfig C>
struct GeneralTask {
  using Params = attention::Params;
  static constexpr int warps = general_warps, threads = 32 * warps, keys = general_keys, warp_rows = C.warp_rows,
                       rows = warps * warp_rows;
  static constexpr int quads = static_cast<int>(div_up(C.head_size, 4));  ///< groups of 4 elements of a query
  static constexpr int key_row = static_cast<int>(
      general_row(max_of(C.head_size, C.value_size)));  ///< floats between keys, or values, in shared memory
  static constexpr int pieces = static_cast<int>(div_up(C.value_size, 32));  ///< elements of a value that a lane sums
  static constexpr bool paged = C.block != 0;

  /// What a warp keeps of its rows.
  struct State {
    float maximum[warp_rows], sum[warp_rows];  ///< the sum is that of this lane's keys
    float output[warp_rows][pieces];
    int position[warp_rows], head[warp_rows], token[warp_rows];
    Visible seen[warp_rows];
  };

  /// Elements [0, Size) of one row as float32, zeros up to `Padded`; vectors of up to 16 bytes where the addresses
  /// allow it. Called by all threads for the rows of a tile: row(r) gives the address (null: fill), fill(r) what stands
  /// in for it, scale(r) a factor.
  template <class T, int Size, int Padded, class Team, class Address>
  static CERMET_DEVICE void load_tile(Team team, float* to, int row_step, int count, bool aligned, Address&& address) {
    constexpr int whole = per_16_bytes<T>, width = Size % whole == 0 ? whole : 1;
    if (width > 1 && aligned) {
      constexpr int vectors = Size / width;
      for (int i = static_cast<int>(team.rank()); i < count * vectors; i += threads) {
        const int r = i / vectors, d = i % vectors * width;
        float factor = 1.0f, fill = 0.0f;
        const T* from = address(r, factor, fill);
        float* out = to + r * row_step + d;
        Vector<T, width> x;
        if (from) x = *reinterpret_cast<const Vector<T, width>*>(from + d);
#pragma unroll
        for (int e = 0; e < width; ++e) out[e] = from ? to_float(x[e]) * factor : fill;
      }
    } else {
      for (int i = static_cast<int>(team.rank()); i < count * Size; i += threads) {
        const int r = i / Size, d = i % Size;
        float factor = 1.0f, fill = 0.0f;
        const T* from = address(r, factor, fill);
        to[r * row_step + d] = from ? to_float(from[d]) * factor : fill;
      }
    }
    if constexpr (Padded != Size)
      for (int i = static_cast<int>(team.rank()); i < count * (Padded - Size); i += threads)
        to[i / (Padded - Size) * row_step + Size + i % (Padded - Size)] = 0.0f;
  }

  /// Rows whose elements are `step` apart, `count` of them and zeros up to `all`: neighbouring threads read
  /// neighbouring rows.
  template <class T, int Size, class Team>
  static CERMET_DEVICE void load_steps(Team team, const T* from, int all, int count, int64_t row_stride, int64_t step,
                                       float* to, int row_step) {
    constexpr int padded = static_cast<int>(div_up(Size, 4)) * 4;
    for (int i = static_cast<int>(team.rank()); i < all * padded; i += threads) {
      const int r = i % all, d = i / all;
      to[r * row_step + d] = r < count && d < Size ? to_float(from[r * row_stride + d * step]) : 0.0f;
    }
  }

  /// Loads keys (or values) first .. first + 32 of a sequence and head; those from `end` on are zeros, those of an
  /// impossible page NaN.
  template <int Size, bool Steps, class Team>
  static CERMET_DEVICE void load_keys(Team team, const Params& p, const KeyList& list, const Sequence& s, int head,
                                      int first, int end, int64_t step, float* to) {
    using T = Element<C.kv>;
    if constexpr (Steps) {
      if (step != 1) {
        const T* from =
            static_cast<const T*>(list.data) + (s.key_begin + first) * list.row_stride + head * list.head_stride;
        return load_steps<T, Size>(team, from, keys, end - first, list.row_stride, step, to, key_row);
      }
    }
    const int32_t* table = paged ? p.block_tables + s.index * p.table_stride : nullptr;
    load_tile<T, Size, static_cast<int>(div_up(Size, 4)) * 4>(
        team, to, key_row, keys, p.aligned, [&](int r, float& factor, float& fill) -> const T* {
          const int j = first + r;
          if (j >= end) return nullptr;
          int64_t page = 0, row = s.key_begin + j;
          if constexpr (paged) {
            page = table[j / C.block];
            row = j % C.block;
            if (page < 0 || page >= p.blocks) {
              fill = quiet_nan();
              return nullptr;
            }
          }
          if (list.scale)
            factor =
                list.scale[page * list.scale_page_stride + row * list.scale_row_stride + head * list.scale_head_stride];
          return static_cast<const T*>(list.data) + page * list.page_stride + row * list.row_stride +
                 head * list.head_stride;
        });
  }

  /// The same of values in columns: a warp reads an element of all of them.
  template <class Team>
  static CERMET_DEVICE void load_columns(Team team, const Params& p, const Sequence& s, int head, int first, int end,
                                         float* to) {
    using T = Element<C.kv>;
    const int32_t* table = p.block_tables + s.index * p.table_stride;
    const int r = static_cast<int>(lane_index()), j = first + r, row = j % C.block;
    const int page = j < end ? table[j / C.block] : 0;
    const bool exists = page >= 0 && page < p.blocks;
    const float factor =
        j < end && exists && p.v.scale
            ? p.v.scale[page * p.v.scale_page_stride + row * p.v.scale_row_stride + head * p.v.scale_head_stride]
            : 1.0f;
    const T* from = static_cast<const T*>(p.v.data) + page * p.v.page_stride + head * p.v.head_stride;
    for (int d = static_cast<int>(team.warp()); d < C.value_size; d += warps) {
      float x = 0.0f;
      if (j < end) x = exists ? to_float(value_in_columns(from, p.v, row, d)) * factor : quiet_nan();
      to[r * key_row + d] = x;
    }
  }

  /// scores[r] of this lane's key.
  static CERMET_DEVICE void multiply_keys(const float* queries, const float* tile, float (&scores)[warp_rows]) {
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) scores[r] = 0.0f;
#pragma unroll 4
    for (int quad = 0; quad < quads; ++quad) {
      const auto key = *reinterpret_cast<const Vector<float, 4>*>(tile + lane * key_row + 4 * quad);
#pragma unroll
      for (int r = 0; r < warp_rows; ++r) {
        const auto query = *reinterpret_cast<const Vector<float, 4>*>(queries + (r * quads + quad) * 4);
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[r] = fmaf(query[e], key[e], scores[r]);
      }
    }
  }

  /// Scores of a tile become weights relative to the rows' new maxima, in shared memory; sums and outputs follow the
  /// maxima.
  template <class Operands>
  static CERMET_DEVICE void update(const Params& p, const Operands& operands, State& state,
                                   const float (&dots)[warp_rows], int first, float* weights) {
    const int lane = static_cast<int>(lane_index()), j = first + lane;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
      const bool seen = j >= state.seen[r].first && j < state.seen[r].last;
      const float slope = p.alibi && seen ? p.alibi[state.head[r]] : 0.0f;
      float score = -infinity();
      if (seen)
        score = operands.change(score_of(p, dots[r], slope, state.position[r] - j), state.head[r], state.token[r], j);
      float top = score;  // NaN is left out here and comes back with its weight
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
      const float maximum = fmaxf(state.maximum[r], top), base = maximum == -infinity() ? 0.0f : maximum;
      const float weight = expf(score - base),
                  shrink = maximum == state.maximum[r] ? 1.0f : expf(state.maximum[r] - base);
      state.maximum[r] = maximum;
      state.sum[r] = fmaf(state.sum[r], shrink, seen ? weight : 0.0f);
      if (shrink != 1.0f) {
#pragma unroll
        for (int e = 0; e < pieces; ++e) state.output[r][e] *= shrink;
      }
      weights[r * keys + lane] = weight;
    }
    __syncwarp();
  }

  /// output += weights * values; with `Masked` a value that a row does not see is not even multiplied by 0, because it
  /// may be NaN, and with `ByWeight` none whose weight is 0.
  template <bool Masked, bool ByWeight>
  static CERMET_DEVICE void multiply_values(State& state, const float* weights, const float* tile, int first) {
    const int lane = static_cast<int>(lane_index());
#pragma unroll 1
    for (int j = 0; j < keys; j += 4) {
      Vector<float, 4> weight[warp_rows];
#pragma unroll
      for (int r = 0; r < warp_rows; ++r)
        weight[r] = *reinterpret_cast<const Vector<float, 4>*>(weights + r * keys + j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int e = 0; e < pieces; ++e) {
          const int d = 32 * e + lane;
          const float value = d < C.value_size ? tile[(j + i) * key_row + d] : 0.0f;
#pragma unroll
          for (int r = 0; r < warp_rows; ++r) {
            if (ByWeight && weight[r][i] == 0.0f) continue;
            if (Masked && (first + j + i < state.seen[r].first || first + j + i >= state.seen[r].last)) continue;
            state.output[r][e] = fmaf(weight[r][i], value, state.output[r][e]);
          }
        }
      }
    }
  }

  static CERMET_DEVICE void store(const Params& p, const Sequence& s, const State& state, int row, int rows_left) {
    using Out = Element<C.out>;
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
      const float sum = warp_reduce<Sum>(state.sum[r]);
      if (r >= rows_left) continue;
      const int token = s.begin + (row + r) / C.group, head = state.head[r];
      const Finish finish = finish_row(p.sinks, head, state.seen[r].first < state.seen[r].last && !is_empty(p, sum),
                                       state.maximum[r], sum);
      Out* out = static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride;  // [Dv]
#pragma unroll
      for (int e = 0; e < pieces; ++e)
        if (32 * e + lane < C.value_size) out[32 * e + lane] = from_float<Out>(state.output[r][e] * finish.factor);
      if (p.lse && lane == 0) p.lse[head * p.lse_head_stride + token] = finish.lse;
    }
  }

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team team, char* smem) {
    const int kv_head = static_cast<int>(item % static_cast<uint32_t>(p.kv_heads));
    const TilePlace place =
        place_of(p, static_cast<int>(item / static_cast<uint32_t>(p.kv_heads)), C.group, rows, paged);
    if (place.sequence < 0) return;
    attend(p, PlainRows(), sequence_of(p, place.sequence, C.block), kv_head, place.index * rows, team, smem);
  }

  /// The rows of a sequence and key-value head from `first_row` on.
  template <class Operands, class Team>
  static CERMET_DEVICE void attend(const Params& p, const Operands& operands, const Sequence& s, int kv_head,
                                   int first_row, Team team, char* smem) {
    const int warp = static_cast<int>(team.warp()), all_rows = (s.end - s.begin) * C.group,
              used = min_of(rows, all_rows - first_row);
    float* queries = reinterpret_cast<float*>(smem);  // [rows][4 quads]
    float* tile = queries + rows * quads * 4;         // [32][key_row]
    float* weights = tile + keys * key_row;           // [rows][32]
    team.sync();                                      // an earlier item may still be reading
    using Q = Element<C.q>;
    const auto query = [&](int r) {
      const int token = s.begin + (first_row + r) / C.group, head = kv_head * C.group + (first_row + r) % C.group;
      return static_cast<const Q*>(p.q) + token * p.q_token_stride + head * p.q_head_stride;
    };
    if (Operands::steps && operands.q_step() != 1) {
      for (int i = static_cast<int>(team.rank()); i < rows * quads * 4; i += threads) {
        const int r = i % rows, d = i / rows;
        queries[r * quads * 4 + d] = r < used && d < C.head_size ? to_float(query(r)[d * operands.q_step()]) : 0.0f;
      }
    } else {
      load_tile<Q, C.head_size, quads * 4>(team, queries, quads * 4, rows, p.aligned,
                                           [&](int r, float&, float&) { return r < used ? query(r) : nullptr; });
    }
    const auto position_of = [&](int r) { return s.keys - (s.end - s.begin) + r / C.group; };
    State state;
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
      const int row = first_row + warp * warp_rows + r;
      state.maximum[r] = -infinity();
      state.sum[r] = 0.0f;
      state.position[r] = position_of(row);
      state.head[r] = kv_head * C.group + row % C.group;
      state.token[r] = row / C.group;
      state.seen[r] = row < all_rows ? visible_keys(p, state.position[r], s.keys) : Visible{0, 0};
#pragma unroll
      for (int e = 0; e < pieces; ++e) state.output[r][e] = 0.0f;
    }
    // Both ends of the visible keys rise with the position.
    const Visible low = visible_keys(p, position_of(first_row), s.keys),
                  high = visible_keys(p, position_of(first_row + used - 1), s.keys);
    for (int first = low.first; first < high.last; first += keys) {
      load_keys<C.head_size, Operands::steps>(team, p, p.k, s, kv_head, first, high.last, operands.k_step(), tile);
      team.sync();
      float scores[warp_rows];
      multiply_keys(queries + warp * warp_rows * quads * 4, tile, scores);
      float* own = weights + warp * warp_rows * keys;
      update(p, operands, state, scores, first, own);
      team.sync();
      if constexpr (C.columns) load_columns(team, p, s, kv_head, first, high.last, tile);
      else
        load_keys<C.value_size, Operands::steps>(team, p, p.v, s, kv_head, first, high.last, operands.v_step(), tile);
      team.sync();
      if (first < high.first || first + keys > low.last || used < rows)
        multiply_values<true, Operands::changes>(state, own, tile, first);
      else multiply_values<false, Operands::changes>(state, own, tile, first);
      team.sync();
    }
    store(p, s, state, first_row + warp * warp_rows, all_rows - first_row - warp * warp_rows);
  }
};

}  // namespace cermet::attention
