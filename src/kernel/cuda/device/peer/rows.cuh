// all_reduce in front of a region of row reductions: a channel has whole rows. The region reads their sums from shared
// memory, or where rows are too long for it from global memory; results have the bits of two launches.
#pragma once

#include "kernel/cuda/device/peer/collective.cuh"
#include "kernel/cuda/device/peer/rows.hpp"
#include "kernel/cuda/device/rowwise/region.cuh"

namespace cermet::peer {

template <class RowTask, ReduceConfig C, SummedOperand Sum>
struct Rows;

template <class Body, RowLayout L, ReduceConfig C, SummedOperand Sum>
struct Rows<row_region::Task<Body, L>, C, Sum> {
  static_assert(L.cluster == 1);
  using Params = RowsParams;
  static constexpr Overlap overlap = Overlap::own;
  using Region = row_region::Task<Body, L>;
  using Unit = UnitOf<C>;
  static constexpr int64_t rows_of_item = L.threads / L.lanes,
                           room = (can_be_stamped<Unit> ? stamped_data_bytes : slot_bytes) / sizeof(Unit);
  static constexpr bool in_shared_memory =
      Sum.shared_offset >= 0 && L.columns > 0 &&
      can_be_stamped<Unit>&& rows_of_item* L.columns * sizeof(Element<C.reduction.type>) <= summed_bytes;
  template <class Team>
  static __device__ void run(const Params& p, uint32_t channel_number, Team team, char* smem) {
    begins(p.link);
    Channel channel(p.link, channel_number);
    for (uint32_t item = channel_number; item < p.items; item += p.channels) {
      const int64_t begin = item * rows_of_item * p.row_units,
                    end = min_of<int64_t>((item + 1) * rows_of_item, p.region.rows) * p.row_units;
      const bool last = item + p.channels >= p.items;
      if constexpr (in_shared_memory) {
        if (!run_in_shared_memory(p, channel, item, begin, end, last, team, smem)) return;
      } else {
        if (!sum_in_global_memory(p, channel, begin, end, last, team)) return;
        team.sync();
        Region::run(p.region, item, team, smem);
      }
      team.sync();
    }
    channel.close(team);
  }

 private:
  using T = Element<C.reduction.type>;

  /// The region's parameters with the sum in shared memory. What the region reads is known to the compiler, which so
  /// needs no copy of them.
  struct Summed {
    const row_region::Params& p;
    struct Operands {
      const row_region::Params& p;
      T* rows;  ///< where row 0 of the operand would be
      CERMET_DEVICE RowOperand operator[](int i) const {
        if (i == Sum.operand) return {rows, {L.columns, 0, 0}};
        return p.operands[i];
      }
    } operands;
    const QuantizedRows& out;
    RowDims dims;  ///< ranks' rows have one leading dimension
    uint32_t rows;
    int32_t length;
  };

  template <class Team>
  static CERMET_DEVICE void read_ahead(const Params& p, uint32_t item, Team team) {
    constexpr uint32_t line = 128;
#pragma unroll
    for (const RowsAhead& ahead : p.ahead)
#pragma unroll 1
      for (uint32_t at = team.rank() * line; at < ahead.bytes; at += Team::size * line)
        ptx::touch(ahead.data + item * ahead.item_bytes + at);
  }

  template <class Team>
  static CERMET_DEVICE bool run_in_shared_memory(const Params& p, Channel& channel, uint32_t item, int64_t begin,
                                                 int64_t end, bool last, Team team, char* smem) {
    bool came;
    if constexpr (rows_of_item == 1)
      came = exchange(p, channel, item, begin, FixedCount<L.columns / C.width>{}, team, smem);
    else came = exchange(p, channel, item, begin, end - begin, team, smem);
    if (!came) return false;
    exchanged(p.link, last);
    T* const rows =
        reinterpret_cast<T*>(smem + Sum.shared_offset) - static_cast<int64_t>(item) * rows_of_item * L.columns;
    Body::template run<L, Team>(Summed{p.region, {p.region, rows}, p.region.out, {}, p.region.rows, p.region.length},
                                item, smem);
    return true;
  }

  template <class Count, class Team>
  static CERMET_DEVICE bool exchange(const Params& p, Channel& channel, uint32_t item, int64_t begin, Count count,
                                     Team team, char* smem) {
    const Unit* const x = static_cast<const Unit*>(p.x) + begin;
    [[maybe_unused]] Unit* const leaves = static_cast<Unit*>(p.sum) + begin;
    Unit* const sum = reinterpret_cast<Unit*>(smem + Sum.shared_offset);
    channel.begin();
    put_stamped<Unit>(team, p.link, channel, x, count, 0);
    read_ahead(p, item, team);
    return take_stamped<C.reduction.ranks>(team, p.link, channel, x, count,
                                           [&](int64_t u, const Unit(&part)[C.reduction.ranks]) {
                                             const Unit value = reduced<C>(part);
                                             sum[u] = value;
                                             if constexpr (Sum.leaves) leaves[u] = value;
                                           });
  }

  template <class Team>
  static CERMET_DEVICE bool sum_in_global_memory(const Params& p, Channel& channel, int64_t begin, int64_t end,
                                                 bool last, Team team) {
    const Unit* const x = static_cast<const Unit*>(p.x);
    Unit* const sum = static_cast<Unit*>(p.sum);
    for (int64_t at = begin; at < end; at += room) {
      const int64_t count = min_of(room, end - at);
      channel.begin();
      if constexpr (can_be_stamped<Unit>) {
        put_stamped<Unit>(team, p.link, channel, x + at, count, 0);
        if (!reduce_stamped<C>(team, p.link, channel, x + at, count, sum + at)) return false;
      } else {
        for (int64_t u = team.rank(); u < count; u += Team::size)
#pragma unroll
          for (int to = 0; to < C.reduction.ranks; ++to)
            if (to != p.link.rank) channel.template slot<Unit>(to, p.link.rank)[u] = x[at + u];
        if (!channel.exchange(team)) return false;
#pragma unroll 1
        for (int64_t u = team.rank(); u < count; u += Team::size) sum[at + u] = reduced<C>(p.link, channel, x + at, u);
      }
      exchanged(p.link, last && at + room >= end);
    }
    return true;
  }
};

}  // namespace cermet::peer
