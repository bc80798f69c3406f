// Online softmax of a warp's tile on the tensor cores. Products are exact and sums float32; what does not fit the type
// of the cache (wider queries, weights) is multiplied as two 16-bit parts. Up to 8 rows the second part is free: it
// fills the lower half of the 16 rows that the tensor cores multiply. Quantized keys and values are widened to float16
// (quantized_tiles.cuh).
#pragma once

#include "kernel/cuda/device/attention/decode_scheduler.cuh"
#include "kernel/cuda/device/attention/quantized_tiles.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/mma.cuh"

namespace cermet::attention {

/// Values of all keys of a tile are multiplied.
struct AllValues {
  CERMET_DEVICE void select(int, uint32_t (&)[2]) const {}
  static CERMET_DEVICE float scale(int, float of_key) { return of_key; }
};
/// Those of the keys first .. end - 1 of a tile are: a weight of 0 does not silence a NaN of another.
template <int Keys>
struct SeenValues {
  int first, end;
  uint32_t mask[Keys / 8];  ///< of keys 8 n + 2 (lane % 4) and the next
  CERMET_DEVICE SeenValues(int first, int end) : first(first), end(end) {
#pragma unroll
    for (int n = 0; n < Keys / 8; ++n) {
      const int key = 8 * n + 2 * static_cast<int>(lane_index() % 4);
      mask[n] = (key >= first && key < end ? 0xffffu : 0u) | (key + 1 >= first && key + 1 < end ? 0xffff0000u : 0u);
    }
  }
  /// Of an operand with keys 8 n .. + 15.
  CERMET_DEVICE void select(int n, uint32_t (&values)[2]) const { values[0] &= mask[n], values[1] &= mask[n + 1]; }
  CERMET_DEVICE float scale(int key, float of_key) const { return key >= first && key < end ? of_key : 0.0f; }
};

/// Rows: where rows of a tile lie.
template <DecodeConfig C, template <DType, int, int> class Rows = CachedRows>
struct DecodeMma {
  using T = Multiplied<C.kv>;
  static constexpr bool is_quantized = cached_bytes<C.kv> == 1;
  static constexpr int keys = C.tile_keys, k_steps = (C.head_size + 15) / 16, v_steps = (C.value_size + 15) / 16,
                       halves = C.rows / 8;
  /// Whether queries may have bits that T lacks; bf16 has none where a power of two is taken out.
  static constexpr bool has_query_units = is_quantized && (C.q != DType::f16 || !C.token_scales),
                        split_queries = is_quantized ? C.q == DType::f32 : C.q != C.kv;

  /// Queries as the left operand, [16 rows, 16 * k_steps].
  struct Queries {
    uint32_t main[k_steps][4];                                      // [D / 16][4]: [16 rows, D] over the warp
    uint32_t rest[C.rows == 16 && split_queries ? k_steps : 1][4];  // the same, second 16-bit parts
    float unit[has_query_units ? halves : 1];                       // [rows / 8]: what products are multiplied with
  };
  /// Maximum (times log2 e), sum of this lane's weights and outputs of row lane / 4, and of row lane / 4 + 8 where
  /// there are 16.
  struct State {
    float maximum[halves], sum[halves];  // [rows / 8]
    float output[2 * v_steps][4];        // [Dv / 8][4]: [16 rows, Dv] over the warp
    ValueUnit value_unit;                // only of quantized values
    CERMET_DEVICE void clear() {
      value_unit.clear();
#pragma unroll
      for (int h = 0; h < halves; ++h) maximum[h] = -infinity(), sum[h] = 0.0f;
#pragma unroll
      for (int n = 0; n < 2 * v_steps; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) output[n][e] = 0.0f;
    }
  };

  /// Queries as they are in memory: of row h, elements query_element(i, lane) and the next.
  struct RawQueries {
    Vector<Element<C.q>, 2> pair[halves][2 * k_steps];  // [rows / 8][D / 8] of two
  };
  static CERMET_DEVICE int query_element(int i, int lane) {
    if constexpr (is_quantized) return WideningOrder<C.head_size>::element(i / 2, lane % 4) + 2 * (i % 2);
    else return 8 * i + 2 * (lane % 4);
  }
  static CERMET_DEVICE void read_queries(const Params& p, const QueryTile& tile, int head, RawQueries& raw) {
    using Q = Element<C.q>;
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const int r = lane / 4 + 8 * h, row = tile.first_row + r;
      const bool used = r < tile.rows;
      const Q* q = static_cast<const Q*>(p.q) + (tile.query_begin + (used ? row / C.group : 0)) * p.q_token_stride +
                   (head * C.group + row % C.group) * p.q_head_stride;
#pragma unroll
      for (int i = 0; i < 2 * k_steps; ++i) {
        const int d = query_element(i, lane);
        raw.pair[h][i] = {};
        if (used && d < C.head_size) raw.pair[h][i] = *reinterpret_cast<const Vector<Q, 2>*>(q + d);
      }
    }
  }
  static CERMET_DEVICE void pack_queries(const RawQueries& raw, Queries& queries) {
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      float factor = 1.0f;
      if constexpr (has_query_units) queries.unit[h] = 1.0f;
      if constexpr (has_query_units && C.q != DType::f16) factor = take_unit(raw, h, queries.unit[h]);
#pragma unroll
      for (int i = 0; i < 2 * k_steps; ++i) {  // register h + 2 * (i % 2) of step i / 2
        float first = to_float(raw.pair[h][i][0]), second = to_float(raw.pair[h][i][1]);
        if constexpr (has_query_units && C.q != DType::f16) first *= factor, second *= factor;
        const uint32_t main = pack(first, second, T{});
        queries.main[i / 2][h + 2 * (i % 2)] = main;
        if constexpr (C.rows == 8)
          queries.main[i / 2][1 + 2 * (i % 2)] = split_queries ? query_rest<T>(first, second, main) : 0u;
        else if constexpr (split_queries) queries.rest[i / 2][h + 2 * (i % 2)] = query_rest<T>(first, second, main);
      }
    }
  }
  /// What the elements of row h are multiplied with; `inverse`, their products.
  static CERMET_DEVICE float take_unit(const RawQueries& raw, int h, float& inverse) {
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < 2 * k_steps; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float x = fabsf(to_float(raw.pair[h][i][e]));
        largest = x < infinity() ? fmaxf(largest, x) : largest;
      }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    const QueryUnit unit(largest);
    inverse = unit.inverse;
    return unit.factor;
  }
  static CERMET_DEVICE void load_queries(const Params& p, const QueryTile& tile, int head, Queries& queries) {
    RawQueries raw;
    read_queries(p, tile, head, raw);
    pack_queries(raw, queries);
  }
  /// At the begin of a span, when its queries are packed.
  static CERMET_DEVICE void begin_span(const Params& p, int head, Queries& queries, State& state) {
    state.clear();
    if constexpr (is_quantized && !C.token_scales) {
#pragma unroll
      for (int h = 0; h < halves; ++h) queries.unit[h] *= head_scale(p.k, head);
      state.value_unit.set(head_scale(p.v, head));
    }
  }

  /// scores[n] of keys 8 n + 2 (lane % 4) and the next; with 8 rows the parts are added up.
  static CERMET_DEVICE void gemm_qk(const Queries& queries, const char* tile,
                                    float (&scores)[keys / 8][4]) requires(!is_quantized) {
    using K = Rows<C.kv, C.head_size, keys>;
    const int lane = static_cast<int>(lane_index()), row = lane / 16 * 8 + lane % 8,
              swizzle = K::swizzle(row) ^ lane / 8 % 2 * 16;
    const char* own = tile + row * K::row_bytes;
    constexpr int chains =
        keys == 16 && k_steps > 1 ? 2 : 1;  // sums of every second step: products that do not wait for each other
    float parts[chains][keys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < k_steps; ++step)
#pragma unroll
      for (int n = 0; n < keys / 8; n += 2) {
        uint32_t k[4];
        ptx::ldmatrix_x4(k, own + n * 8 * K::row_bytes + K::piece_offset(2 * step) + (K::in_piece(2 * step) ^ swizzle));
        const uint32_t even[2] = {k[0], k[1]}, odd[2] = {k[2], k[3]};
        ptx::mma_m16n8k16(parts[step % chains][n], queries.main[step], even, T{});
        ptx::mma_m16n8k16(parts[step % chains][n + 1], queries.main[step], odd, T{});
        if constexpr (C.rows == 16 && split_queries) {
          ptx::mma_m16n8k16(parts[step % chains][n], queries.rest[step], even, T{});
          ptx::mma_m16n8k16(parts[step % chains][n + 1], queries.rest[step], odd, T{});
        }
      }
#pragma unroll
    for (int n = 0; n < keys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[n][e] = chains == 2 ? parts[0][n][e] + parts[chains - 1][n][e] : parts[0][n][e];
      if constexpr (C.rows == 8 && split_queries) scores[n][0] += scores[n][2], scores[n][1] += scores[n][3];
    }
  }

  /// The same; products are multiplied with their keys' scales, or those of the head.
  static CERMET_DEVICE void gemm_qk(const Queries& queries, const char* tile, const float* scales,
                                    float (&scores)[keys / 8][4]) {
    using K = Rows<C.kv, C.head_size, keys>;
    using Order = WideningOrder<C.head_size>;
#pragma unroll
    for (int n = 0; n < keys / 8; ++n) {
      float parts[2][4] = {};  // sums of every second step: products that do not wait for each other
#pragma unroll
      for (int i = 0; i < k_steps / Order::words; ++i) {
        uint32_t words[Order::words];
        load_quantized_keys<K, C.head_size>(tile, n, i, words);
#pragma unroll
        for (int w = 0; w < Order::words; ++w) {
          const int step = i * Order::words + w;
          uint32_t key[2];
          to_f16_pairs(words[w], key[0], key[1], Element<C.kv>{});
          ptx::mma_m16n8k16(parts[step % 2], queries.main[step], key, T{});
          if constexpr (C.rows == 16 && split_queries) ptx::mma_m16n8k16(parts[step % 2], queries.rest[step], key, T{});
        }
      }
      Vector<float, 2> scale{1.0f, 1.0f};
      if constexpr (C.token_scales)
        scale = *reinterpret_cast<const Vector<float, 2>*>(scales + 8 * n + 2 * (static_cast<int>(lane_index()) % 4));
#pragma unroll
      for (int e = 0; e < 2 * halves; ++e) {
        float product = parts[0][e] + parts[1][e];
        if constexpr (C.rows == 8 && split_queries) product += parts[0][e + 2] + parts[1][e + 2];
        if constexpr (has_query_units) product *= queries.unit[e / 2];
        scores[n][e] = C.token_scales ? product * scale[e % 2] : product;
      }
    }
  }

  /// Dot products become scores times log2 e; -infinity where a row does not see the key. `first`: first key of the
  /// tile.
  static CERMET_DEVICE void scale_and_mask(const Params& p, float scale_log2, const QueryTile& tile, int head,
                                           int first, float (&scores)[keys / 8][4]) {
    constexpr bool plain = C.plain;
    const bool whole = first >= tile.all_first && first + keys <= tile.all_end;
    if (plain) {
#pragma unroll
      for (int n = 0; n < keys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2 * halves; ++e) scores[n][e] *= scale_log2;
    }
    if (plain && whole) return;
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const int row = tile.first_row + lane / 4 + 8 * h, position = tile.position + row / C.group;
      const Visible seen = visible_keys(p, position, tile.end_key);
      const float slope = !plain && p.alibi ? p.alibi[head * C.group + row % C.group] : 0.0f;
#pragma unroll
      for (int n = 0; n < keys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = first + 8 * n + 2 * (lane % 4) + e;
          float& score = scores[n][2 * h + e];
          if (key < seen.first || key >= seen.last) score = -infinity();
          else if (!plain) score = score_of(p, score, slope, position - key) * log2_e;
        }
    }
  }

  /// Replaces scores by weights relative to the new maxima; rescales sums and outputs.
  static CERMET_DEVICE void online_softmax(State& state, float (&scores)[keys / 8][4]) {
    float top[halves], shrink[halves];
    bool moved = false;
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      top[h] = state.maximum[h];
#pragma unroll
      for (int n = 0; n < keys / 8; ++n)
        top[h] =
            fmaxf(top[h], fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));  // leaves NaN out; its weight brings it back
      top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 1));
      top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 2));
      moved |= top[h] != state.maximum[h];
    }
    const bool rescale = __any_sync(0xffffffffu, moved);
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const float base = top[h] == -infinity() ? 0.0f : top[h];
      shrink[h] = state.maximum[h] == top[h] ? 1.0f : exp2_approximate(state.maximum[h] - base);
      state.maximum[h] = top[h];
      float sum = 0.0f;
#pragma unroll
      for (int n = 0; n < keys / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          scores[n][2 * h + e] = exp2_approximate(scores[n][2 * h + e] - base);
          sum += scores[n][2 * h + e];
        }
      state.sum[h] = fmaf(state.sum[h], shrink[h], sum);
    }
    if (!rescale) return;
#pragma unroll
    for (int n = 0; n < 2 * v_steps; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) state.output[n][e] *= shrink[halves == 2 ? e / 2 : 0];
  }

  /// Weights of keys 8 n .. + 15 as the left operand, and, of two parts, what rounding left of them.
  static CERMET_DEVICE void pack_weights(const float (&weights)[keys / 8][4], int n, uint32_t (&main)[4],
                                         uint32_t (&rest)[4]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float(&w)[4] = weights[n + i];
      main[2 * i] = pack(w[0], w[1], T{});
      if constexpr (C.rows == 8 || C.weight_parts == 2) rest[2 * i] = pack_rest<T>(w[0], w[1], main[2 * i]);
      if constexpr (C.rows == 8) {
        main[2 * i + 1] = rest[2 * i];
      } else {
        main[2 * i + 1] = pack(w[2], w[3], T{});
        if constexpr (C.weight_parts == 2) rest[2 * i + 1] = pack_rest<T>(w[2], w[3], main[2 * i + 1]);
      }
    }
  }

  template <class Seen = AllValues>
  static CERMET_DEVICE void gemm_pv(State& state, const float (&weights)[keys / 8][4], const char* tile,
                                    const Seen& seen = {}) requires(!is_quantized) {
    using V = Rows<C.kv, C.value_size, keys>;
    const int lane = static_cast<int>(lane_index()), row = lane / 8 % 2 * 8 + lane % 8,
              swizzle = V::swizzle(row) ^ lane / 16 * 16;
    const char* own = tile + row * V::row_bytes;
#pragma unroll
    for (int n = 0; n < keys / 8; n += 2) {
      uint32_t main[4], rest[4];
      pack_weights(weights, n, main, rest);
#pragma unroll
      for (int d = 0; d < v_steps; ++d) {
        uint32_t v[4];
        ptx::ldmatrix_x4_trans(v, own + n * 8 * V::row_bytes + V::piece_offset(2 * d) + (V::in_piece(2 * d) ^ swizzle));
        uint32_t even[2] = {v[0], v[1]}, odd[2] = {v[2], v[3]};
        seen.select(n, even), seen.select(n, odd);
        ptx::mma_m16n8k16(state.output[2 * d], main, even, T{});
        ptx::mma_m16n8k16(state.output[2 * d + 1], main, odd, T{});
        if constexpr (C.rows == 16 && C.weight_parts == 2) {
          ptx::mma_m16n8k16(state.output[2 * d], rest, even, T{});
          ptx::mma_m16n8k16(state.output[2 * d + 1], rest, odd, T{});
        }
      }
    }
  }
  /// The same of quantized values, with their scales: output[2 d] has columns 16 d + 4 (lane % 4) and two on,
  /// output[2 d + 1] those after them. The weights are used up.
  template <class Seen = AllValues>
  static CERMET_DEVICE void gemm_pv(State& state, float (&weights)[keys / 8][4], const char* tile, const float* scales,
                                    const Seen& seen = {}) requires(is_quantized) {
    using V = Rows<C.kv, C.value_size, keys>;
    const int lane = static_cast<int>(lane_index());
    float change = 1.0f;
    if constexpr (C.token_scales) change = state.value_unit.take(seen.scale(lane % keys, scales[lane % keys]));
    if (change != 1.0f) {
#pragma unroll
      for (int n = 0; n < 2 * v_steps; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) state.output[n][e] *= change;
    }
    const float unit = state.value_unit.of_scale();
#pragma unroll
    for (int n = 0; n < keys / 8; n += 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Vector<float, 2> scale{1.0f, 1.0f};
        if constexpr (C.token_scales)
          scale = *reinterpret_cast<const Vector<float, 2>*>(scales + 8 * (n + i) + 2 * (lane % 4));
#pragma unroll
        for (int e = 0; e < 2 * halves; ++e)
          weights[n + i][e] *= seen.scale(8 * (n + i) + 2 * (lane % 4) + e % 2, scale[e % 2]) * unit;
      }
      uint32_t main[4], rest[4];
      pack_weights(weights, n, main, rest);
#pragma unroll
      for (int d = 0; d < v_steps; d += 2) {
        uint32_t even[2][2], odd[2][2];
        load_quantized_values<C.kv, V, v_steps>(tile, 8 * n, d, even, odd);
#pragma unroll
        for (int c = 0; c < 2 && d + c < v_steps; ++c) {
          seen.select(n, even[c]), seen.select(n, odd[c]);
          ptx::mma_m16n8k16(state.output[2 * (d + c)], main, even[c], T{});
          ptx::mma_m16n8k16(state.output[2 * (d + c) + 1], main, odd[c], T{});
          if constexpr (C.rows == 16 && C.weight_parts == 2) {
            ptx::mma_m16n8k16(state.output[2 * (d + c)], rest, even[c], T{});
            ptx::mma_m16n8k16(state.output[2 * (d + c) + 1], rest, odd[c], T{});
          }
        }
      }
    }
  }

  /// Stores this lane's outputs of row h and columns 8 n .. + 7 (of quantized values, where n is even, + 15):
  /// place(d) is where column d of the row goes, and its neighbours after it.
  template <class Place>
  static CERMET_DEVICE void store_outputs(const State& state, int n, int h, Place&& place) {
    const int lane = static_cast<int>(lane_index());
    const auto output = [&](int i, int e) {
      return C.rows == 8 ? state.output[i][e] + state.output[i][e + 2] : state.output[i][2 * h + e];
    };
    if constexpr (is_quantized) {
      if (n % 2 != 0) return;
      const float unit = state.value_unit.of_output();
      *reinterpret_cast<Vector<float, 4>*>(place(8 * n + 4 * (lane % 4))) = {
          output(n, 0) * unit, output(n + 1, 0) * unit, output(n, 1) * unit, output(n + 1, 1) * unit};
    } else {
      *reinterpret_cast<Vector<float, 2>*>(place(8 * n + 2 * (lane % 4))) = {output(n, 0), output(n, 1)};
    }
  }
};

}  // namespace cermet::attention
