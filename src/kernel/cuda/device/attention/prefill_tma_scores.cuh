// From dot products of a tile to weights, without looking for maxima: weights are relative to a base of their row, the
// maximum of the first tile in which it sees a key. As long as their sum stays small it does not matter what they are
// relative to. A row whose sum becomes large, which includes rows without a base, gets a new base, for which the warp
// computes its scores again. score_fragment.cuh says which scores a thread has.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma.hpp"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/score_fragment.cuh"
#include "kernel/cuda/device/ptx/ldmatrix.cuh"
#include "kernel/cuda/device/ptx/mma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

/// The same number, of which the compiler does not know that no item changes it: what follows from it is computed when
/// it is needed, not kept in registers.
CERMET_DEVICE int not_hoisted(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

/// An item, as the warp that finds it describes it to the others.
struct PrefillNote {
  int tiles;                           ///< of keys; -1: there are no more items
  int sequence, token, rows, kv_head;  ///< first token; rows: of the tile, queries times the group
  int position, keys;                  ///< of the first token among the keys of its sequence; number of those
  int key_begin;                       ///< of the sequence where keys are not paged
  int first, last;                     ///< key at which the first tile begins; end of the keys that some row sees
  int first_seen;
  int broken;  ///< whether a page of them does not exist; known when the last values have arrived
};

template <TmaPrefillConfig C>
struct PrefillScores {
  using T = Element<C.kv>;
  static constexpr int keys = C.keys;
  /// Sum of a thread's weights of a tile from which on the row gets a new base. What is below fits 16 bits, and leaves
  /// two parts the bits that they have.
  static constexpr float limit = C.parts == 2 ? 0x1p8f : C.kv == DType::f16 ? 0x1p15f : 0x1p16f;
  static constexpr float no_base = -0x1p100f;  ///< any score makes an infinite weight of it, -infinity makes 0

  float base[2], sum[2];  ///< of two rows, in powers of two; sums of this lane's weights
  int first_row;          ///< of the thread in the tile; its other one is 8 below
  Visible seen_by_all;    ///< keys that all 16 rows of the warp see

  static CERMET_DEVICE int token_of(int row) { return static_cast<int>(static_cast<uint32_t>(row) / C.group); }
  static CERMET_DEVICE int head_of(int row) { return static_cast<int>(static_cast<uint32_t>(row) % C.group); }

  /// The warp's first row of the tile.
  CERMET_DEVICE int warp_row() const { return not_hoisted(first_row) / 16 * 16; }

  /// A new item.
  CERMET_DEVICE void start(const Params& p, const PrefillNote& note) {
#pragma unroll
    for (int h = 0; h < 2; ++h) base[h] = no_base, sum[h] = 0.0f;
    const int warp_row = this->warp_row();
    seen_by_all = {visible_keys(p, note.position + token_of(warp_row + 15), note.keys).first,
                   visible_keys(p, note.position + token_of(warp_row), note.keys).last};
  }

  /// Dot products of the first tile become weights.
  CERMET_DEVICE void begin(const TmaPrefillParams& params, const PrefillNote& note, float (&scores)[keys / 2]) {
    const float factor = finish(params, note, note.first, scores);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      base[h] = fmaxf(largest_score(scores, h) * factor, no_base);
      sum[h] = weigh(scores, h, factor);
    }
  }

  /// Those of a later tile. Returns whether outputs are to be multiplied with `shrink`.
  CERMET_DEVICE bool add(const TmaPrefillParams& params, const PrefillNote& note, int first, const char* queries,
                         const char* tile, float (&scores)[keys / 2], float (&shrink)[2]) {
    const float factor = finish(params, note, first, scores);
    float part[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) part[h] = weigh(scores, h, factor);
    const bool moves = __any_sync(0xffffffffu, fmaxf(part[0], part[1]) > limit);
    if (moves) move(params, note, first, queries, tile, scores, part, shrink);
#pragma unroll
    for (int h = 0; h < 2; ++h) sum[h] += part[h];
    return moves;
  }

  /// Maximum for finish_row: what sums are relative to.
  CERMET_DEVICE float maximum(int h) const { return base[h] == no_base ? -infinity() : base[h] * ln_2; }

 private:
  /// Changes dot products to scores, -infinity where a row does not see the key. Returns the factor that they still
  /// lack to be times log2 e.
  CERMET_DEVICE float finish(const TmaPrefillParams& params, const PrefillNote& note, int first,
                             float (&scores)[keys / 2]) const {
    const Params& p = params.a;
    if constexpr (!C.plain) change(p, note, first, scores);
    if (first < seen_by_all.first || first + keys > seen_by_all.last) mask(p, note, first, scores);
    return C.plain ? params.scale_log2 : 1.0f;
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
    const float scale = p.scale * log2_e, cap = p.softcap * log2_e, twice = 2.0f * scale / cap;
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
      const float slope = row < note.rows ? p.alibi[note.kv_head * C.group + head_of(row)] * log2_e : 0.0f;
      const float distance = static_cast<float>(position(note, h) - first - 2 * static_cast<int>(lane_index() % 4));
      for_scores(scores, h, 0, [&](float& score, int j, int i, int) {
        score = fmaf(-slope, fabsf(distance - static_cast<float>(8 * j + i)), score);
      });
    }
  }

  /// Scores of row h become weights. Returns the sum of this lane's.
  CERMET_DEVICE float weigh(float (&scores)[keys / 2], int h, float factor) const {
    float even = 0.0f, odd = 0.0f;
#pragma unroll
    for (int j = 0; j < keys / 8; ++j) {
      float &a = scores[4 * j + 2 * h], &b = scores[4 * j + 2 * h + 1];
      a = exp2_approximate(fmaf(a, factor, -base[h]));
      b = exp2_approximate(fmaf(b, factor, -base[h]));
      even += a;
      odd += b;
    }
    return even + odd;
  }

  /// Rows whose sums are too large get their maximum as base.
  CERMET_DEVICE void move(const TmaPrefillParams& params, const PrefillNote& note, int first, const char* queries,
                          const char* tile, float (&scores)[keys / 2], float (&part)[2], float (&shrink)[2]) {
    multiply_again(queries + warp_row() * 128, tile, scores);
    const float factor = finish(params, note, first, scores);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t large = __ballot_sync(0xffffffffu, part[h] > limit) >> (lane_index() / 4 * 4);
      const float old = base[h], top = largest_score(scores, h) * factor;
      shrink[h] = 1.0f;
      if (large % 16 != 0 && top > old) {
        base[h] = top;
        shrink[h] = exp2_approximate(old - top);
        sum[h] *= shrink[h];
      }
      part[h] = weigh(scores, h, factor);
    }
  }

  /// The warp's dot products once more. queries: its 16 rows
  static CERMET_DEVICE void multiply_again(const char* queries, const char* tile, float (&scores)[keys / 2]) {
    const int lane = not_hoisted(static_cast<int>(lane_index())), row = lane % 16, key = lane % 8 + lane / 16 * 8;
#pragma unroll
    for (int i = 0; i < keys / 2; ++i) scores[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < (C.head_size + 15) / 16; ++step) {
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
          ptx::mma_m16n8k16(d, a, own, T{});
#pragma unroll
          for (int k = 0; k < 4; ++k) scores[8 * pair + 4 * i + k] = d[k];
        }
      }
    }
  }
};

}  // namespace cermet::attention
#endif
