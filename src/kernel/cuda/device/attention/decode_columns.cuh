// Warps of a block that share 16 rows: each has the scores of some keys of a tile, and then, with the weights of all of
// them, some columns of the values. So heads may be wide: outputs of 16 rows take a warp 64 registers at 128 columns.
//
// For each unit: scores of a warp's 8 keys of each tile, from queries in shared memory; the rows' maxima go through
// shared memory, a barrier of the warps that share rows; weights in one or two 16-bit parts go through shared memory, a
// barrier; products with the values of all keys.
#pragma once

#include "kernel/cuda/device/attention/decode_shared_load.cuh"
#include "kernel/cuda/device/attention/decode_shared_rows.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeColumns {
  using Load = SharedTileLoader<C, Team>;
  static constexpr int parts = C.column_parts, row_tiles = C.rows / decode_warp_rows, keys = C.tile_keys,
                       tiles = Load::tiles, slice = keys / parts, columns = C.value_size / parts,
                       k_steps = C.head_size / 16, v_steps = columns / 16;
  static constexpr DecodeConfig warp_config = [] {
    DecodeConfig c = C;
    c.rows = decode_warp_rows;
    c.tile_keys = slice;
    c.value_size = columns;
    return c;
  }();
  using Mma = DecodeMma<warp_config>;
  using T = typename Mma::T;
  static constexpr int query_parts = Mma::split_queries ? 2 : 1, stage_bytes = tiles * Load::tile_bytes;
  using QueryRows = TileRows<C.head_size, decode_warp_rows>;
  using WeightRows = TileRows<tiles * keys, decode_warp_rows>;
  static_assert(Team::warps == row_tiles * parts && slice == 8);
  static_assert(C.head_size % 32 == 0 && columns % 16 == 0);

  using Scores = float[tiles][1][4];  // of keys 2 (lane % 4) and the next of the warp's in each tile

  typename Mma::State state;

  struct Shared {
    float* maxima;  ///< [rows][parts]
    float* sums;    ///< [rows][parts]
    float* units;   ///< [rows]: what products of a row's query are multiplied with
    char* queries;  ///< [row_tiles][query_parts] of QueryRows
    char* weights;  ///< [row_tiles][2] of WeightRows
    char* stages;
    CERMET_DEVICE explicit Shared(char* smem)
        : maxima(reinterpret_cast<float*>(smem)),
          sums(maxima + C.rows * parts),
          units(sums + C.rows * parts),
          queries(smem + decode_columns_exchange_bytes(C.rows, parts)),
          weights(queries + row_tiles * query_parts * QueryRows::bytes),
          stages(weights + row_tiles * 2 * WeightRows::bytes) {}
    CERMET_DEVICE char* stage(int i) const { return stages + i * stage_bytes; }
  };

  static CERMET_DEVICE int row_tile() { return static_cast<int>(Team::warp()) % row_tiles; }
  static CERMET_DEVICE int part() { return static_cast<int>(Team::warp()) / row_tiles; }
  static CERMET_DEVICE void sync_rows() { Team::sync_part(row_tile(), 32 * parts); }

  /// The warp's rows of a query tile; may be none.
  static CERMET_DEVICE QueryTile own_rows(const QueryTile& tile) {
    QueryTile own = tile;
    const int before = row_tile() * decode_warp_rows;
    own.first_row += before;
    own.rows = max_of(0, min_of(decode_warp_rows, tile.rows - before));
    return own;
  }

  /// Queries to shared memory, as left operands: whole rows by each warp, several at a time.
  CERMET_DEVICE void begin_span(const Params& p, const Shared& shared, const WorkUnit& at) {
    using Q = Element<C.q>;
    constexpr int pairs = (C.head_size / 2 + 31) / 32, at_once = pairs <= 4 ? 4 : 2, warps = Team::warps;
    const int lane = static_cast<int>(lane_index());
    state.clear();
    float key_scale = 1.0f;
    if constexpr (Mma::is_quantized && !C.token_scales) {
      key_scale = head_scale(p.k, at.head);
      state.value_unit.set(head_scale(p.v, at.head));
    }
#pragma unroll 1
    for (int begin = static_cast<int>(Team::warp()); begin < C.rows; begin += at_once * warps) {
      Vector<Q, 2> raw[at_once][pairs];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int r = begin + k * warps, row = at.tile.first_row + r;
        const bool used = r < at.tile.rows;
        const Q* q = static_cast<const Q*>(p.q) +
                     (at.tile.query_begin + (used ? row / C.group : 0)) * p.q_token_stride +
                     (at.head * C.group + row % C.group) * p.q_head_stride;
#pragma unroll
        for (int i = 0; i < pairs; ++i) {
          const int d = 2 * (32 * i + lane);
          raw[k][i] = {};
          if (used && d < C.head_size) raw[k][i] = *reinterpret_cast<const Vector<Q, 2>*>(q + d);
        }
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (begin + k * warps < C.rows) store_query(shared, begin + k * warps, raw[k], key_scale);
    }
  }

  template <class Pair, int pairs>
  static CERMET_DEVICE void store_query(const Shared& shared, int r, const Pair (&raw)[pairs], float key_scale) {
    const int lane = static_cast<int>(lane_index());
    float factor = 1.0f;
    if constexpr (Mma::has_query_units) {
      float largest = 0.0f;
#pragma unroll
      for (int i = 0; i < pairs; ++i)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const float x = fabsf(to_float(raw[i][e]));
          largest = x < infinity() ? fmaxf(largest, x) : largest;
        }
#pragma unroll
      for (int width = 16; width > 0; width /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, width));
      const QueryUnit unit(largest);
      factor = unit.factor;
      if (lane == 0) shared.units[r] = unit.inverse * key_scale;
    }
    char* to = shared.queries + r / decode_warp_rows * query_parts * QueryRows::bytes;
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      const int d = 2 * (32 * i + lane);
      if (d >= C.head_size) break;
      const float first = to_float(raw[i][0]) * factor, second = to_float(raw[i][1]) * factor;
      int column = d;
      if constexpr (Mma::is_quantized) {
        using Order = WideningOrder<C.head_size>;
        column = 16 * Order::step_of(d) + Order::place_of(d);
      }
      const int place = QueryRows::offset(r % decode_warp_rows, column / 8) + column % 8 * 2;
      const uint32_t main = pack(first, second, T{});
      *reinterpret_cast<uint32_t*>(to + place) = main;
      if constexpr (query_parts == 2)
        *reinterpret_cast<uint32_t*>(to + QueryRows::bytes + place) = query_rest<T>(first, second, main);
    }
  }

  /// Queries of a step as the left operand.
  static CERMET_DEVICE void load_queries(const char* tile, int step, uint32_t (&a)[4]) {
    const int lane = static_cast<int>(lane_index());
    ptx::ldmatrix_x4(a, tile + QueryRows::offset(lane % 16, 2 * step + lane / 16));
  }

  static CERMET_DEVICE void gemm_qk(const Shared& shared, const char* stage, Scores& scores) {
    using K = typename Load::K;
    constexpr int chains = 4 / tiles;  // sums of every such step: products that do not wait for each other
    const int lane = static_cast<int>(lane_index());
    const char* queries = shared.queries + row_tile() * query_parts * QueryRows::bytes;
    float sums[tiles][chains][4] = {};
    const auto multiply = [&](int step, const uint32_t(&key)[tiles][2]) {
      uint32_t a[4];
      load_queries(queries, step, a);
#pragma unroll
      for (int i = 0; i < tiles; ++i) ptx::mma_m16n8k16(sums[i][step % chains], a, key[i], T{});
      if constexpr (query_parts == 2) {
        load_queries(queries + QueryRows::bytes, step, a);
#pragma unroll
        for (int i = 0; i < tiles; ++i) ptx::mma_m16n8k16(sums[i][step % chains], a, key[i], T{});
      }
    };
    if constexpr (Mma::is_quantized) {
      using Order = WideningOrder<C.head_size>;
#pragma unroll
      for (int j = 0; j < k_steps / Order::words; ++j) {
        uint32_t words[tiles][Order::words];
#pragma unroll
        for (int i = 0; i < tiles; ++i)
          load_quantized_keys<K, C.head_size>(stage + i * Load::tile_bytes, part(), j, words[i]);
#pragma unroll
        for (int w = 0; w < Order::words; ++w) {
          uint32_t key[tiles][2];
#pragma unroll
          for (int i = 0; i < tiles; ++i) to_f16_pairs(words[i][w], key[i][0], key[i][1], Element<C.kv>{});
          multiply(j * Order::words + w, key);
        }
      }
    } else {
#pragma unroll
      for (int step = 0; step < k_steps; step += 2) {
        uint32_t even[tiles][2], odd[tiles][2];
#pragma unroll
        for (int i = 0; i < tiles; ++i) {
          uint32_t k[4];
          ptx::ldmatrix_x4(k, stage + i * Load::tile_bytes + K::offset(part() * slice + lane % 8, 2 * step + lane / 8));
          even[i][0] = k[0], even[i][1] = k[1], odd[i][0] = k[2], odd[i][1] = k[3];
        }
        multiply(step, even);
        multiply(step + 1, odd);
      }
    }
#pragma unroll
    for (int i = 0; i < tiles; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float& score = scores[i][0][e];
        score = 0.0f;
#pragma unroll
        for (int chain = 0; chain < chains; ++chain) score += sums[i][chain][e];
        if constexpr (Mma::has_query_units) score *= shared.units[row_tile() * decode_warp_rows + lane / 4 + e / 2 * 8];
        if constexpr (C.token_scales) score *= own_scale(Load::scales(stage + i * Load::tile_bytes), e);
      }
  }
  /// Scale of one of the keys of a score.
  static CERMET_DEVICE float own_scale(const float* scales, int e) {
    return scales[part() * slice + 2 * (static_cast<int>(lane_index()) % 4) + e % 2];
  }

  /// Rows' maxima over all keys of the unit, and of the units before, in `top`.
  CERMET_DEVICE void find_maxima(const Shared& shared, const Scores& scores, float (&top)[2]) const {
    const int lane = static_cast<int>(lane_index());
    float* maxima = shared.maxima + row_tile() * decode_warp_rows * parts;  // [16][parts]
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float own = -infinity();
#pragma unroll
      for (int i = 0; i < tiles; ++i) own = fmaxf(own, fmaxf(scores[i][0][2 * h], scores[i][0][2 * h + 1]));
      own = fmaxf(own, __shfl_xor_sync(0xffffffffu, own, 1));
      own = fmaxf(own, __shfl_xor_sync(0xffffffffu, own, 2));
      if (lane % 4 == 0) maxima[(lane / 4 + 8 * h) * parts + part()] = own;
    }
    sync_rows();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const auto of_parts = *reinterpret_cast<const Vector<float, parts>*>(maxima + (lane / 4 + 8 * h) * parts);
      top[h] = state.maximum[h];
#pragma unroll
      for (int i = 0; i < parts; ++i) top[h] = fmaxf(top[h], of_parts[i]);
    }
  }

  CERMET_DEVICE void rescale(const float (&factor)[2]) {
#pragma unroll
    for (int n = 0; n < 2 * v_steps; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) state.output[n][e] *= factor[e / 2];
  }

  /// Weights of the warp's keys, relative to the new maxima, to shared memory; sums and outputs follow.
  CERMET_DEVICE void online_softmax(const Shared& shared, const char* stage, Scores& scores) {
    const int lane = static_cast<int>(lane_index());
    float top[2], shrink[2];
    find_maxima(shared, scores, top);
    bool moved = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float base = top[h] == -infinity() ? 0.0f : top[h];
      moved |= top[h] != state.maximum[h];
      shrink[h] = state.maximum[h] == top[h] ? 1.0f : exp2_approximate(state.maximum[h] - base);
      state.maximum[h] = top[h];
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < tiles; ++i)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          scores[i][0][e] = exp2_approximate(scores[i][0][e] - base);
          sum += scores[i][0][e];
        }
      state.sum[h] = fmaf(state.sum[h], shrink[h], sum);
    }
    if constexpr (Mma::is_quantized) moved |= scale_weights(stage, scores, shrink);
    if (__any_sync(0xffffffffu, moved)) rescale(shrink);
    char* weights = shared.weights + row_tile() * 2 * WeightRows::bytes;
#pragma unroll
    for (int i = 0; i < tiles; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float first = scores[i][0][2 * h], second = scores[i][0][2 * h + 1];
        char* to = weights + WeightRows::offset(lane / 4 + 8 * h, i * parts + part()) + 4 * (lane % 4);
        const uint32_t main = pack(first, second, T{});
        *reinterpret_cast<uint32_t*>(to) = main;
        if constexpr (C.weight_parts == 2)
          *reinterpret_cast<uint32_t*>(to + WeightRows::bytes) = pack_rest<T>(first, second, main);
      }
    sync_rows();
  }
  /// Applies the values' scales. Returns whether outputs are to be multiplied, too.
  CERMET_DEVICE bool scale_weights(const char* stage, Scores& scores, float (&shrink)[2]) {
    float change = 1.0f;
    if constexpr (C.token_scales)
#pragma unroll
      for (int i = 0; i < tiles; ++i)
        change *= state.value_unit.take((Load::scales(stage + i * Load::tile_bytes) + keys)[lane_index()]);
    shrink[0] *= change, shrink[1] *= change;
    const float unit = state.value_unit.of_scale();
#pragma unroll
    for (int i = 0; i < tiles; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[i][0][e] *=
            (C.token_scales ? own_scale(Load::scales(stage + i * Load::tile_bytes) + keys, e) : 1.0f) * unit;
    return change != 1.0f;
  }

  /// Weights of all keys times the warp's columns of the values.
  CERMET_DEVICE void gemm_pv(const Shared& shared, const char* stage) {
    using V = CachedRows<C.kv, C.values_in_keys ? C.head_size : C.value_size, keys>;
    const int lane = static_cast<int>(lane_index());
    const char* weights = shared.weights + row_tile() * 2 * WeightRows::bytes;
#pragma unroll
    for (int first = 0; first < tiles * keys; first += 16) {
      const char* tile = Load::values(stage + first / keys * Load::tile_bytes);
      const int k = first % keys, place = WeightRows::offset(lane % 16, first / 8 + lane / 16);
      uint32_t main[4], rest[4];
      ptx::ldmatrix_x4(main, weights + place);
      if constexpr (C.weight_parts == 2) ptx::ldmatrix_x4(rest, weights + WeightRows::bytes + place);
      const auto multiply = [&](int n, const uint32_t(&value)[2]) {
        ptx::mma_m16n8k16(state.output[n], main, value, T{});
        if constexpr (C.weight_parts == 2) ptx::mma_m16n8k16(state.output[n], rest, value, T{});
      };
      if constexpr (Mma::is_quantized) {
#pragma unroll
        for (int d = 0; d < v_steps; d += 2) {
          uint32_t even[2][2], odd[2][2];
          load_quantized_values<C.kv, V, C.value_size / 16>(tile, k, part() * v_steps + d, even, odd);
#pragma unroll
          for (int c = 0; c < 2 && d + c < v_steps; ++c)
            multiply(2 * (d + c), even[c]), multiply(2 * (d + c) + 1, odd[c]);
        }
      } else {
#pragma unroll
        for (int d = 0; d < v_steps; ++d) {
          uint32_t v[4];
          const int row = k + lane / 8 % 2 * 8 + lane % 8, chunk = part() * columns / 8 + 2 * d + lane / 16;
          ptx::ldmatrix_x4_trans(v, tile + V::offset(row, chunk));
          multiply(2 * d, {v[0], v[1]});
          multiply(2 * d + 1, {v[2], v[3]});
        }
      }
    }
  }

  /// A unit through the online softmax. `page_missing`: it needed a page that does not exist.
  CERMET_DEVICE void consume(const DecodeParams& params, const Shared& shared, const WorkUnit& at, const char* stage,
                             bool page_missing) {
    const QueryTile own = own_rows(at.tile);
    if (own.rows == 0 || Load::first_key(at, 0) >= at.tile.end_key) return;
    Scores scores;
    gemm_qk(shared, stage, scores);
#pragma unroll
    for (int i = 0; i < tiles; ++i)
      Mma::scale_and_mask(params.a, params.scale_log2, own, at.head, Load::first_key(at, i) + part() * slice,
                          scores[i]);
    online_softmax(shared, stage, scores);
    gemm_pv(shared, stage);
    if (page_missing) state.sum[0] = state.sum[1] = quiet_nan();
  }

  /// Calls sink(r, d, partial) for every four elements of the warp's used rows and columns, r counting rows of the
  /// block. They pass through the warp's part of `stage`, which no warp reads any more.
  template <class Sink>
  CERMET_DEVICE void for_quads(const Shared& shared, const QueryTile& tile, char* stage, Sink&& sink) const {
    const int lane = static_cast<int>(lane_index()), before = row_tile() * decode_warp_rows, rows = own_rows(tile).rows;
    if (rows == 0) return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int r = before + lane / 4 + 8 * h;
      if (lane % 4 == 0) shared.sums[r * parts + part()] = sum;
      if (lane % 4 == 0 && part() == 0) shared.maxima[r * parts] = state.maximum[h];
    }
    sync_rows();
    constexpr int part_bytes = stage_bytes / Team::warps / 16 * 16;
    using Passes = OutputPasses<Mma, columns, part_bytes>;
    float* memory = reinterpret_cast<float*>(stage + static_cast<int>(Team::warp()) * part_bytes);
#pragma unroll
    for (int first = 0; first < columns; first += Passes::columns) {
      Passes::store(state, first, memory);
      __syncwarp();
#pragma unroll 1
      for (int i = lane; i < rows * (Passes::columns / 4); i += 32) {
        const int r = i / (Passes::columns / 4), d = i % (Passes::columns / 4) * 4;
        const auto output = Passes::load(memory, r, d);
        const auto of_parts = *reinterpret_cast<const Vector<float, parts>*>(shared.sums + (before + r) * parts);
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < parts; ++k) sum += of_parts[k];
        sink(before + r, part() * columns + first + d,
             PartialRow{shared.maxima[(before + r) * parts], sum, {output[0], output[1], output[2], output[3]}});
      }
      __syncwarp();
    }
  }
};

}  // namespace cermet::attention
