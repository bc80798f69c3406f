// moe_permute of many pairs: a stable counting sort of the pairs of token and expert, and the copies of the tokens'
// rows. Nothing here depends on the order of blocks. Counts of chunks (Count), rows from them (RowIndices), then the
// copies (Copy); few pairs: permute_few.cuh. A pair whose expert does not exist goes nowhere: its row_of is -1.
#pragma once

#include "kernel/cuda/device/mixture/permute_ids.cuh"

namespace cermet::permute {

CERMET_DEVICE int32_t group_of_pair(const Params& p, int64_t pair) {
  const int64_t at = offset_of(p, pair, p.ids_stride);
  return p.wide_ids != 0 ? group_of(p, static_cast<const int64_t*>(p.ids)[at])
                         : group_of(p, static_cast<const int32_t*>(p.ids)[at]);
}

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
      const int32_t e = group_of_pair(p, pair);
      if (e != no_group) atomicAdd(&count[e], 1);
    }
    __syncwarp();
    for (int e = lane; e < p.experts; e += 32) p.counts[chunk * p.experts + e] = count[e];
    __syncwarp();
  }
};

/// One work item: the rows of the pairs of `warps` chunks; the first item writes the offsets.
struct RowIndices {
  using Params = permute::Params;
  static constexpr int each = chunk_experts / threads;

  /// next[w][e] = where the first pair of expert e in the item's chunk w goes.
  template <class Team>
  static CERMET_DEVICE void first_rows(Team team, const Params& p, uint32_t item, int32_t* next) {
    int32_t* sums = next + warps * chunk_experts;  // [warps]
    const int64_t first = static_cast<int64_t>(item) * warps;
    const int thread = static_cast<int>(team.rank()), experts = static_cast<int>(p.experts);
    int32_t before[each], counts[each], sum = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int e = thread * each + i;
      before[i] = counts[i] = 0;
      if (e >= experts) continue;
#pragma unroll 8
      for (int64_t c = 0; c < p.chunks; ++c) {
        const int32_t count = p.counts[c * experts + e];
        counts[i] += count;
        before[i] += c < first ? count : 0;
      }
      sum += counts[i];
    }
    const int32_t inclusive = inclusive_sum(sum);
    if (thread % 32 == 31) sums[thread / 32] = inclusive;
    team.sync();
    int32_t at = inclusive - sum;
    for (int w = 0; w < thread / 32; ++w) at += sums[w];
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int e = thread * each + i;
      if (e >= experts) continue;
      int32_t row = at + before[i];
      for (int w = 0; w < warps; ++w) {
        next[w * chunk_experts + e] = row;
        if (first + w < p.chunks) row += p.counts[(first + w) * experts + e];
      }
      if (item == 0) p.offsets[e] = at;
      at += counts[i];
      if (item == 0 && e + 1 == experts) p.offsets[experts] = at;
    }
    team.sync();
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    int32_t* rows = reinterpret_cast<int32_t*>(smem);
    first_rows(team, p, item, rows);
    const int64_t chunk = static_cast<int64_t>(item) * warps + team.warp();
    int32_t* next = rows + team.warp() * chunk_experts;  // [experts]
    const int64_t end = min_of((chunk + 1) * p.chunk, p.tokens * p.k);
    for (int64_t first = chunk * p.chunk; first < end; first += 32) {
      const int64_t pair = first + lane_index();
      const int32_t expert = pair < end ? group_of_pair(p, pair) : no_group;
      const bool legal = expert != no_group;
      const uint32_t same = __match_any_sync(0xffffffffu, expert);
      const uint32_t below = __popc(same & ((1u << lane_index()) - 1));
      const int32_t row = legal ? next[expert] + static_cast<int32_t>(below) : -1;
      __syncwarp();
      if (legal && below == 0) next[expert] += __popc(same);
      __syncwarp();
      if (pair < end) p.row_of[offset_of(p, pair, p.row_of_stride)] = row;
    }
    team.sync();
  }
};

/// One work item: a token's row, to the rows of its pairs.
struct Copy {
  using Params = permute::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t token, Team team, char*) {
    for (int64_t first = 0; first < p.k; first += choices_at_once) {
      const int count = static_cast<int>(min_of<int64_t>(choices_at_once, p.k - first));
      int32_t to[choices_at_once];
#pragma unroll
      for (int j = 0; j < choices_at_once; ++j) to[j] = j < count ? p.row_of[token * p.row_of_stride + first + j] : -1;
      if (p.scales != nullptr && static_cast<int>(team.rank()) < count) {
        const int32_t row = p.row_of[token * p.row_of_stride + first + team.rank()];
        if (row >= 0) p.row_scales[row] = p.scales[token];
      }
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
