// moe_permute: a stable counting sort of the pairs of token and expert, and the copies of the tokens' rows. Nothing here depends on the order of blocks.
// Few pairs: every block counts for itself (Direct). Many: counts of chunks (Count), places from them (Place), then the copies (Copy).
// A pair whose expert does not exist goes nowhere: its row_of is -1.
#pragma once

#include "kernel/cuda/device/mixture/permute.hpp"
#include "kernel/cuda/device/movement/axes.cuh"

namespace cermet::permute {

__device__ __forceinline__ int64_t expert_of(const Params& p, int64_t token, int64_t j) { return load_index(p.ids, p.wide_ids, token * p.ids_stride + j); }
__device__ __forceinline__ int64_t expert_of(const Params& p, int64_t pair) {
  const uint32_t at = static_cast<uint32_t>(pair), k = static_cast<uint32_t>(p.k), token = at / k;  // fewer than 2^31 pairs: row_of is int32
  return expert_of(p, token, at - token * k);
}

/// Copies the row of a token to `count` places; a negative one is skipped.
template <class Word, class Team>
__device__ __forceinline__ void copy_row(Team team, const Params& p, int64_t token, const int32_t* to, int count) {
  const Word* from = static_cast<const Word*>(p.x) + token * p.x_stride;  // [row_words]
  for (int64_t w = team.rank(); w < p.row_words; w += threads) {
    const Word word = from[w];
    for (int j = 0; j < count; ++j)
      if (to[j] >= 0) static_cast<Word*>(p.rows)[to[j] * p.rows_stride + w] = word;
  }
}

/// offsets[e] = pairs of experts before e, in passes of pass_experts.
template <class Team>
__device__ inline void write_offsets(Team team, const Params& p, int32_t* count) {
  constexpr int each = pass_experts / threads;
  int32_t* warp_sum = count + pass_experts;  // [warps]
  const int64_t pairs = p.tokens * p.k;
  const int thread = static_cast<int>(team.rank());
  int32_t before = 0;
  if (thread == 0) p.offsets[0] = 0;
  for (int64_t first = 0; first < p.experts; first += pass_experts) {
    for (int e = thread; e < pass_experts; e += threads) count[e] = 0;
    team.sync();
    for (int64_t pair = thread; pair < pairs; pair += threads) {
      const int64_t e = expert_of(p, pair) - first;
      if (e >= 0 && e < pass_experts && e + first < p.experts) atomicAdd(&count[e], 1);
    }
    team.sync();
    int32_t sum = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) sum += count[thread * each + i];
    int32_t inclusive = sum;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int32_t y = __shfl_up_sync(0xffffffffu, inclusive, offset);
      if (thread % 32 >= offset) inclusive += y;
    }
    if (thread % 32 == 31) warp_sum[thread / 32] = inclusive;
    team.sync();
    int32_t at = before + inclusive - sum;
    for (int w = 0; w < warps; ++w) {
      if (w < thread / 32) at += warp_sum[w];
      before += warp_sum[w];
    }
#pragma unroll
    for (int i = 0; i < each; ++i) {
      at += count[thread * each + i];
      if (first + thread * each + i < p.experts) p.offsets[first + thread * each + i + 1] = at;
    }
    team.sync();
  }
}

/// One work item: a token; the last one, beyond the tokens, writes the offsets.
struct Direct {
  using Params = permute::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t token, Team team, char* smem) {
    if (token == p.tokens) return write_offsets(team, p, reinterpret_cast<int32_t*>(smem));
    int32_t* to = reinterpret_cast<int32_t*>(smem);  // [choices_at_once]
    const int64_t pairs = p.tokens * p.k;
    for (int64_t first = 0; first < p.k; first += choices_at_once) {
      const int count = static_cast<int>(min_of<int64_t>(choices_at_once, p.k - first));
      if (team.rank() < choices_at_once) to[team.rank()] = 0;
      int64_t expert[choices_at_once];
      int32_t before[choices_at_once];
#pragma unroll
      for (int j = 0; j < choices_at_once; ++j) {
        expert[j] = j < count ? expert_of(p, token, first + j) : -1;
        before[j] = 0;
      }
      for (int64_t pair = team.rank(); pair < pairs; pair += threads) {
        const int64_t other = expert_of(p, pair);
        if (other < 0) continue;
#pragma unroll
        for (int j = 0; j < choices_at_once; ++j) before[j] += other < expert[j] || (other == expert[j] && pair < token * p.k + first + j) ? 1 : 0;
      }
      team.sync();
#pragma unroll
      for (int j = 0; j < choices_at_once; ++j) {
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) before[j] += __shfl_xor_sync(0xffffffffu, before[j], offset);
        if (lane_index() == 0 && j < count) atomicAdd(&to[j], before[j]);
      }
      team.sync();
      if (static_cast<int>(team.rank()) < count) {
        const int64_t e = expert_of(p, token, first + team.rank());
        if (e < 0 || e >= p.experts) to[team.rank()] = -1;
        p.row_of[token * p.row_of_stride + first + team.rank()] = to[team.rank()];
      }
      team.sync();
      by_word_size(p.word_bytes, [&](auto zero) { copy_row<decltype(zero)>(team, p, token, to, count); });
      team.sync();
    }
  }
};

/// One work item: a chunk for each warp. counts[chunk][e] = pairs of expert e in it.
struct Count {
  using Params = permute::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    const int64_t chunk = static_cast<int64_t>(item) * warps + team.warp();
    if (chunk >= p.chunks) return;
    const int lane = static_cast<int>(lane_index());
    int32_t* count = reinterpret_cast<int32_t*>(smem) + team.warp() * chunk_experts;  // [experts]
    for (int e = lane; e < p.experts; e += 32) count[e] = 0;
    __syncwarp();
    const int64_t end = min_of((chunk + 1) * p.chunk, p.tokens * p.k);
    for (int64_t pair = chunk * p.chunk + lane; pair < end; pair += 32) {
      const int64_t e = expert_of(p, pair);
      if (e >= 0 && e < p.experts) atomicAdd(&count[e], 1);
    }
    __syncwarp();
    for (int e = lane; e < p.experts; e += 32) p.counts[chunk * p.experts + e] = count[e];
    __syncwarp();
  }
};

/// One work item: the places of the pairs of `warps` chunks; the first item writes the offsets.
struct Place {
  using Params = permute::Params;
  static constexpr int each = chunk_experts / threads;

  /// next[w][e] = where the first pair of expert e in the item's chunk w goes.
  template <class Team>
  static __device__ __forceinline__ void first_places(Team team, const Params& p, uint32_t item, int32_t* next) {
    int32_t* warp_sum = next + warps * chunk_experts;  // [warps]
    const int64_t first = static_cast<int64_t>(item) * warps;
    const int thread = static_cast<int>(team.rank()), experts = static_cast<int>(p.experts);
    int32_t before[each], all[each], sum = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int e = thread * each + i;
      before[i] = all[i] = 0;
      if (e >= experts) continue;
#pragma unroll 8
      for (int64_t c = 0; c < p.chunks; ++c) {
        const int32_t count = p.counts[c * experts + e];
        all[i] += count;
        before[i] += c < first ? count : 0;
      }
      sum += all[i];
    }
    int32_t inclusive = sum;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int32_t y = __shfl_up_sync(0xffffffffu, inclusive, offset);
      if (thread % 32 >= offset) inclusive += y;
    }
    if (thread % 32 == 31) warp_sum[thread / 32] = inclusive;
    team.sync();
    int32_t at = inclusive - sum;
    for (int w = 0; w < thread / 32; ++w) at += warp_sum[w];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int e = thread * each + i;
      if (e >= experts) continue;
      int32_t place = at + before[i];
      for (int w = 0; w < warps; ++w) {
        next[w * chunk_experts + e] = place;
        if (first + w < p.chunks) place += p.counts[(first + w) * experts + e];
      }
      if (item == 0) p.offsets[e] = at;
      at += all[i];
      if (item == 0 && e + 1 == experts) p.offsets[experts] = at;
    }
    team.sync();
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    int32_t* places = reinterpret_cast<int32_t*>(smem);
    first_places(team, p, item, places);
    const int64_t chunk = static_cast<int64_t>(item) * warps + team.warp();
    int32_t* next = places + team.warp() * chunk_experts;  // [experts]
    const int64_t end = min_of((chunk + 1) * p.chunk, p.tokens * p.k);
    for (int64_t first = chunk * p.chunk; first < end; first += 32) {
      const int64_t pair = first + lane_index();
      const int64_t expert = pair < end ? expert_of(p, pair) : -1;
      const bool legal = expert >= 0 && expert < p.experts;
      const uint32_t same = __match_any_sync(0xffffffffu, legal ? static_cast<int>(expert) : -1);
      const uint32_t below = __popc(same & ((1u << lane_index()) - 1));
      const int32_t place = legal ? next[expert] + static_cast<int32_t>(below) : -1;
      __syncwarp();
      if (legal && below == 0) next[expert] += __popc(same);
      __syncwarp();
      if (pair < end) {
        const uint32_t at = static_cast<uint32_t>(pair), k = static_cast<uint32_t>(p.k), token = at / k;
        p.row_of[token * p.row_of_stride + (at - token * k)] = place;
      }
    }
    team.sync();
  }
};

/// One work item: a token's row, to the places of its pairs.
struct Copy {
  using Params = permute::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t token, Team team, char*) {
    for (int64_t first = 0; first < p.k; first += choices_at_once) {
      const int count = static_cast<int>(min_of<int64_t>(choices_at_once, p.k - first));
      int32_t to[choices_at_once];
#pragma unroll
      for (int j = 0; j < choices_at_once; ++j) to[j] = j < count ? p.row_of[token * p.row_of_stride + first + j] : -1;
      by_word_size(p.word_bytes, [&](auto zero) {
        using Word = decltype(zero);
        const Word* from = static_cast<const Word*>(p.x) + token * p.x_stride;  // [row_words]
        for (int64_t w = team.rank(); w < p.row_words; w += threads) {
          const Word word = from[w];
#pragma unroll
          for (int j = 0; j < choices_at_once; ++j)
            if (to[j] >= 0) static_cast<Word*>(p.rows)[to[j] * p.rows_stride + w] = word;
        }
      });
    }
  }
};

}  // namespace cermet::permute
