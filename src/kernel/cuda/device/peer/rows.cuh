// all_reduce in front of a region of row reductions: a channel has whole rows. Their sums go to memory, which the region reads from the nearest cache, so that
// results have the bits of two launches.
#pragma once

#include "kernel/cuda/device/peer/collective.cuh"
#include "kernel/cuda/device/peer/rows.hpp"
#include "kernel/cuda/device/rowwise/region.cuh"

namespace cermet::peer {

template <class RowTask, ReduceConfig C>
struct Rows;

template <class Body, RowShape S, ReduceConfig C>
struct Rows<row_region::Task<Body, S>, C> {
  static_assert(S.cluster == 1);
  using Params = RowsParams;
  static constexpr Overlap overlap = Overlap::own;
  using Unit = UnitOf<C>;
  static constexpr int64_t rows_of_item = S.threads / S.lanes, room = slot_bytes / sizeof(Unit);

  template <class Team>
  static __device__ void run(const Params& p, uint32_t channel_number, Team team, char* smem) {
    begins(p.link);
    Channel channel(p.link, channel_number);
    const Unit* const x = static_cast<const Unit*>(p.x);
    Unit* const sum = static_cast<Unit*>(p.sum);
    for (uint32_t item = channel_number; item < p.items; item += p.channels) {
      const int64_t begin = item * rows_of_item * p.row_units, end = min_of<int64_t>((item + 1) * rows_of_item, p.region.rows) * p.row_units;
      const bool last_item = item + p.channels >= p.items;
      for (int64_t at = begin; at < end; at += room) {
        const int64_t count = min_of(room, end - at);
        channel.begin();
        if constexpr (can_be_stamped<Unit>) {
          put_stamped<Unit>(team, p.link, channel, x + at, count, 0);
          if (!reduce_stamped<C>(team, p.link, channel, x + at, count, sum + at)) return;
        } else {
          for (int64_t u = team.rank(); u < count; u += Team::size)
#pragma unroll
            for (int to = 0; to < C.reduction.ranks; ++to)
              if (to != p.link.rank) channel.template slot<Unit>(to, p.link.rank)[u] = x[at + u];
          if (!channel.exchange(team)) return;
#pragma unroll 1
          for (int64_t u = team.rank(); u < count; u += Team::size) sum[at + u] = reduced<C>(p.link, channel, x + at, u);
        }
        exchanged(p.link, last_item && at + room >= end);
      }
      team.sync();
      row_region::Task<Body, S>::run(p.region, item, team, smem);
      team.sync();
    }
    channel.close(team);
  }
};

}  // namespace cermet::peer
