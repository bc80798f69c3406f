// all_to_all whose parts have sizes of their own, between GPUs that address each other's memory. One work item: a
// channel's share of each part. All ranks know the largest part, so that a channel has as many exchanges on every rank,
// some of them without data.
#pragma once

#include "kernel/cuda/device/peer/collective.cuh"
#include "kernel/cuda/device/peer/ragged.hpp"

namespace cermet::peer {

struct MoveRagged {
  using Params = RaggedParams;
  static constexpr Overlap overlap = Overlap::own;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    by_word_size(p.word_bytes, [&](auto zero) { move<decltype(zero)>(p, item, team); });
  }

 private:
  template <class Unit, class Team>
  static CERMET_DEVICE void move(const Params& p, uint32_t item, Team team) {
    constexpr int64_t room = slot_bytes / sizeof(Unit);
    const int me = p.link.rank;
    const Unit* const x = static_cast<const Unit*>(p.x);
    Unit* const y = static_cast<Unit*>(p.y);
    begins(p.link);
    Channel channel(p.link, item);
    const Share share(p.most, p.channels, item);
    for (int64_t at = share.begin; at < share.end; at += room) {
      const int64_t end = min_of(at + room, share.end);
      channel.begin();
#pragma unroll 1
      for (int to = 0; to < p.link.ranks; ++to) {
        if (to == me) continue;
        const int64_t count = min_of(end, p.sent[to].words) - at;  // negative past the part's end
        Unit* const slot = channel.slot<Unit>(to, me);
        for (int64_t u = team.rank(); u < count; u += Team::size) slot[u] = x[p.sent[to].begin + at + u];
      }
      if (!channel.exchange(team)) return;
      exchanged(p.link, end >= share.end);
#pragma unroll 1
      for (int from = 0; from < p.link.ranks; ++from) {
        if (from == me) continue;
        const int64_t count = min_of(end, p.received[from].words) - at;
        const Unit* const slot = channel.slot<const Unit>(me, from);
        for (int64_t u = team.rank(); u < count; u += Team::size) y[p.received[from].begin + at + u] = slot[u];
      }
    }
    channel.close(team);
    const Share own(p.sent[me].words, p.channels, item);
    for (int64_t u = own.begin + team.rank(); u < own.end; u += Team::size)
      y[p.received[me].begin + u] = x[p.sent[me].begin + u];
  }
};

}  // namespace cermet::peer
