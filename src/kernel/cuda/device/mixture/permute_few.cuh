// moe_permute of few pairs, in one launch: every block counts all pairs for itself, which costs less than launches
// between which counts are exchanged. What takes time is memory's latency, so that ids and a block's part of the row
// are asked for together, before anything is counted.
#pragma once

#include "kernel/cuda/device/mixture/permute_ids.cuh"

namespace cermet::permute {

/// offsets[e] = pairs of experts before e, in passes of pass_experts.
template <class Id, class Team>
CERMET_DEVICE void write_offsets(Team team, const Params& p, int32_t* count) {
  int32_t* sums = count + pass_experts;  // [warps]
  const int thread = static_cast<int>(team.rank());
  int32_t before = 0;
  if (thread == 0) p.offsets[0] = 0;
  for (int64_t first = 0; first < p.experts; first += pass_experts) {
    const int here = static_cast<int>(min_of<int64_t>(pass_experts, p.experts - first)),
              each = (here + threads - 1) / threads;
#pragma unroll 1
    for (int i = 0; i < each; ++i) count[thread + i * threads] = 0;
    team.sync();
    for_pairs<Id>(p, thread, static_cast<int32_t>(p.tokens * p.k), [&](int32_t, int32_t group) {
      const int64_t e = group - first;
      if (e >= 0 && e < here) atomicAdd(&count[e], 1);
    });
    team.sync();
    int32_t sum = 0;
#pragma unroll 1
    for (int i = 0; i < each; ++i) sum += count[thread * each + i];
    const int32_t inclusive = inclusive_sum(sum);
    if (thread % 32 == 31) sums[thread / 32] = inclusive;
    team.sync();
    int32_t at = before + inclusive - sum;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      if (w < thread / 32) at += sums[w];
      before += sums[w];
    }
#pragma unroll 1
    for (int i = 0; i < each; ++i) {
      at += count[thread * each + i];
      if (thread * each + i < here) p.offsets[first + thread * each + i + 1] = at;
    }
    team.sync();
  }
}

/// Work item 0 writes the offsets; the others each copy a slice of a token's row to the places of its pairs, and the
/// first of a token writes its row_of.
struct Direct {
  using Params = permute::Params;

  /// A thread's words of a slice.
  struct Share {
    int at, end;  ///< the first, and the end of the slice
    int step;
    int team;  ///< which of the places, every teams-th, the thread copies to
  };

  static CERMET_DEVICE Share share_of(const Params& p, uint32_t slice, uint32_t rank) {
    const int begin = static_cast<int>(slice) * p.slice_words, step = 1 << p.lanes_shift;
    return {begin + (static_cast<int>(rank) & (step - 1)), min_of(begin + p.slice_words, static_cast<int>(p.row_words)),
            step, static_cast<int>(rank >> p.lanes_shift)};
  }

  static CERMET_DEVICE void load(const Word16* row, const Share& s, int at, Word16 (&held)[words_held]) {
#pragma unroll
    for (int i = 0; i < words_held; ++i)
      if (at + i * s.step < s.end) held[i] = row[at + i * s.step];
  }

  /// Copies the share to those of `count` places that are not negative. `held`: its first words.
  static CERMET_DEVICE void copy(const Params& p, const Word16* from, const Share& s, Word16 (&held)[words_held],
                                 const int32_t* to, int count) {
    const int teams = threads >> p.lanes_shift;
#pragma unroll 1
    for (int at = s.at; at < s.end; at += words_held * s.step) {
      if (at != s.at) load(from, s, at, held);
#pragma unroll 1
      for (int j = s.team; j < count; j += teams) {
        if (to[j] < 0) continue;
        Word16* row = static_cast<Word16*>(p.rows) + to[j] * p.rows_stride;  // [row_words]
#pragma unroll
        for (int i = 0; i < words_held; ++i)
          if (at + i * s.step < s.end) row[at + i * s.step] = held[i];
      }
    }
  }
  template <class Word>
  static CERMET_DEVICE void copy_narrow(const Params& p, int64_t token, const Share& s, const int32_t* to, int count) {
    const Word* from = static_cast<const Word*>(p.x) + token * p.x_stride;  // [row_words]
    const int teams = threads >> p.lanes_shift;
#pragma unroll 1
    for (int j = s.team; j < count; j += teams) {
      if (to[j] < 0) continue;
      Word* row = static_cast<Word*>(p.rows) + to[j] * p.rows_stride;  // [row_words]
#pragma unroll 1
      for (int at = s.at; at < s.end; at += s.step) row[at] = from[at];
    }
  }

  /// A warp's place: of pair `own`, the pairs of experts before its own and those of its own before it. -1 where it has
  /// no expert. All threads call.
  template <class Team>
  static CERMET_DEVICE int32_t find_place(Team team, const Params& p, int32_t own, int32_t* groups) {
    const auto pairs = static_cast<int32_t>(p.tokens * p.k);
    int32_t group = no_group, before = 0;
#pragma unroll 1
    for (int32_t first = 0; first < pairs; first += groups_held) {
      if (first > 0) team.sync();  // the last groups were read
      const int32_t count = min_of(groups_held, pairs - first), whole = (count + 127) / 128 * 128;
      by_id_type(p, [&](auto zero) {
        using Id = decltype(zero);
        const Id id = static_cast<const Id*>(p.ids)[offset_of(p, min_of(own, pairs - 1), p.ids_stride)];
        for_pairs<Id>(p, first + static_cast<int32_t>(team.rank()), first + count,
                      [&](int32_t pair, int32_t g) { groups[pair - first] = g; });
        group = group_of(p, id);
      });
      if (count + static_cast<int32_t>(team.rank()) < whole) groups[count + team.rank()] = no_group;
      team.sync();
      const int4* four = reinterpret_cast<const int4*>(groups);
      for (int32_t i = static_cast<int32_t>(lane_index()) * 4; i < whole; i += 128) {
        const int4 g = four[i / 4];
        const int32_t earlier = own - first - i;  // of these pairs are before the own one
        before += (g.x < group + (earlier > 0)) + (g.y < group + (earlier > 1)) + (g.z < group + (earlier > 2)) +
                  (g.w < group + (earlier > 3));
      }
    }
    before = warp_sum(before);
    return group == no_group ? -1 : before;
  }

  template <class Team>
  static CERMET_DEVICE void copy_slice(Team team, const Params& p, int64_t token, uint32_t slice, int32_t* numbers) {
    int32_t *to = numbers + groups_held, *groups = numbers;  // [warps], [groups_held]
    const Share share = share_of(p, slice, team.rank());
    const bool wide = p.word_bytes == sizeof(Word16);
    const Word16* from = static_cast<const Word16*>(p.x) + token * p.x_stride;  // [row_words]
    Word16 held[words_held];
    const float scale = p.scales != nullptr ? p.scales[token] : 0;
#pragma unroll 1
    for (int32_t first = 0; first < p.k; first += warps) {
      if (wide) load(from, share, share.at, held);
      const int32_t count = min_of(warps, static_cast<int32_t>(p.k) - first), warp = static_cast<int32_t>(team.warp());
      const int32_t place = find_place(team, p, static_cast<int32_t>(token * p.k) + first + warp, groups);
      if (lane_index() == 0) {
        to[warp] = place;
        if (slice == 0 && warp < count) p.row_of[token * p.row_of_stride + first + warp] = place;
        if (slice == 0 && warp < count && p.scales != nullptr && place >= 0) p.row_scales[place] = scale;
      }
      team.sync();
      if (wide) copy(p, from, share, held, to, count);
      else by_word_size(p.word_bytes, [&](auto zero) { copy_narrow<decltype(zero)>(p, token, share, to, count); });
      team.sync();
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    int32_t* numbers = reinterpret_cast<int32_t*>(smem);
    if (item > 0)
      return copy_slice(team, p, (item - 1) >> p.slices_shift, (item - 1) & ((1u << p.slices_shift) - 1), numbers);
    by_id_type(p, [&](auto zero) { write_offsets<decltype(zero)>(team, p, numbers); });
  }
};

}  // namespace cermet::permute
