// From dot products of a tile to weights, without looking for maxima: weights are relative to a base of their row, the
// maximum of the first tile in which it sees a key. As long as their sum stays small it does not matter what they are
// relative to. A row whose sum becomes large, which includes rows without a base, gets a new base, for which the warp
// computes its scores again. score_fragment.cuh says which scores a thread has.
#pragma once

#include "kernel/cuda/device/attention/prefill_items.cuh"
#include "kernel/cuda/device/attention/prefill_tma.hpp"
#include "kernel/cuda/device/attention/score_fragment.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/mma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <auto C>
struct PrefillScores {
  using T = Element<C.kv>;
  static constexpr int keys = C.keys;
  /// Sum of a thread's weights of a tile, or of a quarter of them in 8 bits, from which on the row gets a new base.
  /// What is below fits the type, and leaves two parts the bits that they have.
  static constexpr float limit = C.columns ? 448.0f : C.parts == 2 ? 0x1p8f : C.kv == DType::f16 ? 0x1p15f : 0x1p16f;
  /// Weight of a base's score, in powers of two: e4m3 has room for 2^9 below it that is not subnormal.
  static constexpr float base_weight = C.columns ? 5.0f : 0.0f;
  static constexpr float no_base = -0x1p100f;  ///< any score makes an infinite weight of it, -infinity makes 0

  float base[2], sum[2];         ///< of two rows, in powers of two; sums of this lane's weights
  float rounding[2];             ///< what rounding added to the largest of them
  int first_row;                 ///< of the thread in the tile; its other one is 8 below
  Visible seen_by_all;           ///< keys that all 16 rows of the warp see
  float key_scale, value_scale;  ///< of 8-bit keys, and of results so far

  static CERMET_DEVICE int token_of(int row) { return static_cast<int>(static_cast<uint32_t>(row) / C.group); }
  static CERMET_DEVICE int head_of(int row) { return static_cast<int>(static_cast<uint32_t>(row) % C.group); }

  /// The warp's first row of the tile.
  CERMET_DEVICE int warp_row() const { return not_hoisted(first_row) / 16 * 16; }

  /// A new item.
  CERMET_DEVICE void start(const Params& p, const PrefillNote& note) {
#pragma unroll
    for (int h = 0; h < 2; ++h) base[h] = no_base, sum[h] = rounding[h] = 0.0f;
    if constexpr (C.columns) key_scale = note.key_scale, value_scale = note.value_scale;
    const int warp_row = this->warp_row();
    seen_by_all = {visible_keys(p, note.position + token_of(warp_row + 15), note.keys).first,
                   visible_keys(p, note.position + token_of(warp_row), note.keys).last};
  }

  /// Dot products of the first tile become weights. scales: of its tokens
  CERMET_DEVICE void begin(const TmaPrefillParams& params, const PrefillNote& note, const float* scales,
                           float (&scores)[keys / 2]) {
    const float factor = finish(params, note, note.first, scales, scores);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float unused;
      base[h] = fmaxf(largest_score(scores, h) * factor - base_weight, no_base);
      sum[h] = weigh(scores, h, factor, unused);
    }
    if constexpr (C.token_scales) value_scale = scales[2 * keys], multiply_columns(scores, scales + keys);
  }

  /// Those of a later tile. Returns whether outputs are to be multiplied with `shrink`.
  CERMET_DEVICE bool add(const TmaPrefillParams& params, const PrefillNote& note, int first, const char* queries,
                         const char* tile, const float* scales, float (&scores)[keys / 2], float (&shrink)[2]) {
    const float factor = finish(params, note, first, scales, scores);
    float part[2], most[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) part[h] = weigh(scores, h, factor, most[h]);
    const bool large = fmaxf(most[0], most[1]) > limit,
               dominates = C.rounds_sums() && (part[0] > sum[0] || part[1] > sum[1]);
    bool moves = false;  // rare, like tiles that dominate, which the first ones may
    if (__any_sync(0xffffffffu, large || dominates)) {
      moves = __any_sync(0xffffffffu, large);
      if (moves) move(params, note, first, queries, tile, scales, scores, part, most, shrink);
      add_rounding(scores);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) sum[h] += part[h];
    if constexpr (C.token_scales) {
      multiply_columns(scores, scales + keys);
      const float relative_to = scales[2 * keys];
      if (relative_to != value_scale) {
#pragma unroll
        for (int h = 0; h < 2; ++h) shrink[h] *= value_scale / relative_to;
        value_scale = relative_to, moves = true;
      }
    }
    return moves;
  }

  /// Maximum for finish_row: what sums are relative to.
  CERMET_DEVICE float maximum(int h) const { return base[h] == no_base ? -infinity() : base[h] * ln_2; }

  /// Changes dot products to scores, -infinity where a row does not see the key. Returns the factor that they still
  /// lack to be times log2 e.
  CERMET_DEVICE float finish(const TmaPrefillParams& params, const PrefillNote& note, int first, const float* scales,
                             float (&scores)[keys / 2]) const {
    const Params& p = params.a;
    if constexpr (C.token_scales) multiply_columns(scores, scales);
    if constexpr (!C.plain) change(p, note, first, scores);
    if (first < seen_by_all.first || first + keys > seen_by_all.last) mask(p, note, first, scores);
    if constexpr (!C.plain || C.token_scales) return 1.0f;
    return C.columns ? params.scale_log2 * key_scale : params.scale_log2;
  }

  /// Scores of row h become weights. Returns the sum of this lane's; `most` is what `limit` bounds.
  CERMET_DEVICE float weigh(float (&scores)[keys / 2], int h, float factor, float& most) const {
    constexpr int pairs = C.columns ? 2 : 1;
    float even[pairs] = {}, odd[pairs] = {};
#pragma unroll
    for (int j = 0; j < keys / 8; ++j) {
      float &a = scores[4 * j + 2 * h], &b = scores[4 * j + 2 * h + 1];
      a = exp2_approximate(fmaf(a, factor, -base[h]));
      b = exp2_approximate(fmaf(b, factor, -base[h]));
      even[j % pairs] += a;
      odd[j % pairs] += b;
    }
    const float sum = even[0] + odd[0];
    if constexpr (pairs == 1) return most = sum;
    most = fmaxf(fmaxf(even[0], odd[0]), fmaxf(even[pairs - 1], odd[pairs - 1]));
    return sum + (even[pairs - 1] + odd[pairs - 1]);
  }

 private:
  /// Of a lane's largest weights.
  CERMET_DEVICE void add_rounding(const float (&scores)[keys / 2]) {
    if constexpr (C.rounds_sums()) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most = 0.0f;
#pragma unroll
        for (int j = 0; j < keys / 8; ++j) most = fmaxf(most, fmaxf(scores[4 * j + 2 * h], scores[4 * j + 2 * h + 1]));
        rounding[h] += rounded(most, T{}) - most;
      }
    }
  }

  /// Multiplies both rows with a number for each key.
  static CERMET_DEVICE void multiply_columns(float (&scores)[keys / 2], const float* factors) {
    const float* const own = factors + 2 * (lane_index() % 4);
#pragma unroll
    for (int j = 0; j < keys / 8; ++j) {
      const auto pair = *reinterpret_cast<const Vector<float, 2>*>(own + 8 * j);
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[4 * j + i] *= pair[i % 2];
    }
  }

  CERMET_DEVICE int position(const PrefillNote& note, int h) const {
    return note.position + token_of(first_row + 8 * h);
  }

  CERMET_DEVICE void mask(const Params& p, const PrefillNote& note, int first, float (&scores)[keys / 2]) const {
    const int lane_first = first + 2 * static_cast<int>(lane_index() % 4);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const Visible seen = visible_keys(p, position(note, h), note.keys);
      const int end = seen.last - lane_first, begin = seen.first - lane_first;
      for_scores(scores, h, 0, [&](float& score, int j, int i, int) {
        if (8 * j + i >= end) score = -infinity();
      });
      if (p.window > 0)
        for_scores(scores, h, 0, [&](float& score, int j, int i, int) {
          if (8 * j + i < begin) score = -infinity();
        });
    }
  }

  /// What softcap and alibi do, times log2 e. Tangents are made of exponentials: two instructions of the special
  /// units, and an absolute error of 2^-22.
  CERMET_DEVICE void change(const Params& p, const PrefillNote& note, int first, float (&scores)[keys / 2]) const {
    const float scale = (C.columns ? p.scale * key_scale : p.scale) * log2_e, cap = p.softcap * log2_e,
                twice = 2.0f * scale / cap;
    if (p.softcap > 0.0f) {
#pragma unroll
      for (int i = 0; i < keys / 2; ++i) {
        const float x = scores[i];
        if constexpr (C.parts == 2) scores[i] = cap * tanhf(x * (0.5f * twice));
        else scores[i] = fmaf(-2.0f * cap, __fdividef(1.0f, 1.0f + exp2_approximate(x * (twice * log2_e))), cap);
      }
    } else {
#pragma unroll
      for (int i = 0; i < keys / 2; ++i) scores[i] *= scale;
    }
    if (!p.alibi) return;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = first_row + 8 * h;
      const float slope = row < note.rows ? p.alibi[note.head + head_of(row)] * log2_e : 0.0f;
      const float distance = static_cast<float>(position(note, h) - first - 2 * static_cast<int>(lane_index() % 4));
      for_scores(scores, h, 0, [&](float& score, int j, int i, int) {
        score = fmaf(-slope, fabsf(distance - static_cast<float>(8 * j + i)), score);
      });
    }
  }

  /// Rows whose sums are too large get their maximum as base.
  CERMET_DEVICE void move(const TmaPrefillParams& params, const PrefillNote& note, int first, const char* queries,
                          const char* tile, const float* scales, float (&scores)[keys / 2], float (&part)[2],
                          float (&most)[2], float (&shrink)[2]) {
    multiply_again(queries + warp_row() * 128, tile, scores);
    const float factor = finish(params, note, first, scales, scores);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t large = __ballot_sync(0xffffffffu, most[h] > limit) >> (lane_index() / 4 * 4);
      const float old = base[h], top = largest_score(scores, h) * factor - base_weight;
      shrink[h] = 1.0f;
      if (large % 16 != 0 && top > old) {
        base[h] = top;
        shrink[h] = exp2_approximate(old - top);
        sum[h] *= shrink[h], rounding[h] *= shrink[h];
      }
      part[h] = weigh(scores, h, factor, most[h]);
    }
  }

  /// The warp's dot products once more. queries: its 16 rows
  static CERMET_DEVICE void multiply_again(const char* queries, const char* tile, float (&scores)[keys / 2]) {
    const int lane = not_hoisted(static_cast<int>(lane_index())), row = lane % 16, key = lane % 8 + lane / 16 * 8;
#pragma unroll
    for (int i = 0; i < keys / 2; ++i) scores[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < (C.head_size * C.element_bytes() + 31) / 32; ++step) {
      const int a_chunk = step % 4 * 2 + lane / 16, b_chunk = step % 4 * 2 + lane / 8 % 2;
      uint32_t a[4];
      ptx::ldmatrix_x4(a, queries + step / 4 * (C.rows() * 128) + row * 128 + (a_chunk ^ row % 8) * 16);
#pragma unroll
      for (int pair = 0; pair < keys / 16; ++pair) {
        uint32_t b[4];
        ptx::ldmatrix_x4(b, tile + step / 4 * (keys * 128) + (16 * pair + key) * 128 + (b_chunk ^ key % 8) * 16);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float d[4];
#pragma unroll
          for (int k = 0; k < 4; ++k) d[k] = scores[8 * pair + 4 * i + k];
          const uint32_t own[2] = {b[2 * i], b[2 * i + 1]};
          if constexpr (C.columns) ptx::mma_m16n8k32(d, a, own, T{});
          else ptx::mma_m16n8k16(d, a, own, T{});
#pragma unroll
          for (int k = 0; k < 4; ++k) scores[8 * pair + 4 * i + k] = d[k];
        }
      }
    }
  }
};

}  // namespace cermet::attention
#endif
