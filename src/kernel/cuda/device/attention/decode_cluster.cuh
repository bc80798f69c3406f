// Decoding attention with few spans and not too many keys: a cluster of thread blocks has one span, so that its
// partials are added up in the cluster's shared memory. The tiles of keys are dealt out in turn (decode_split.cuh). The
// launch has as many blocks as items.
#pragma once

#include "kernel/cuda/device/attention/decode_split.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeCluster {
  using Params = DecodeParams;
  using Split = DecodeSplit<C, Team>;
  using Mainloop = typename Split::Mainloop;
  using Load = typename Split::Load;
  static constexpr int ranks = C.ranks, threads = Mainloop::threads,
                       most_each = decode_inbox_each(C.rows, C.value_size, ranks);

  /// Partials of those rows' elements that this block adds up, from every block of the cluster.
  struct Inbox {
    Vector<float, 4> output[ranks][most_each];
    Vector<float, 2> sums[ranks][most_each];  ///< maximum and sum
    uint64_t full[2];                         ///< the first: a barrier that counts the bytes
  };
  static_assert(sizeof(Inbox) == decode_inbox_bytes(C.rows, C.value_size, ranks));

  static CERMET_DEVICE void compute(const Params& params, uint32_t item, char* smem) {
#if CERMET_ARCH >= 900
    const attention::Params& p = params.a;
    const int rank = static_cast<int>(item % ranks);
    Inbox& inbox = *reinterpret_cast<Inbox*>(
        smem + decode_shared_bytes(C.head_size, C.value_size, C.tile_keys, Load::bytes, C.warps, C.stages, C.rows));
    Split::prefetch_tables(p, item);
    if (Team::rank() == 0) {
      ptx::mbarrier_init(inbox.full, 1);
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_arrive_relaxed();  // the others wait for it before they send
    const typename Mainloop::Shared shared(smem);
    Mainloop::prepare(shared);
    WorkUnit at;
    if (!Split::begin(p, item, at)) return ptx::cluster_wait();  // as do all blocks of the cluster
    typename Split::Mma::State state;
    Split::attend(params, at, shared, state);
    const int rows = at.tile.rows, own = (rows * (C.value_size / 4) - rank + ranks - 1) /
                                         ranks;  // groups of elements are dealt out in turn, too
    if (Team::rank() == 0 && own > 0) ptx::mbarrier_arrive_expect(inbox.full, static_cast<uint32_t>(own * ranks * 24));
    ptx::cluster_wait();
    // Through stage 0: warps may have had different numbers of tiles, but none has copies under way.
    combine_warps<C, Team>(shared, rows, state, 0, [&](int i, int, int, const PartialRow& partial) {
      const auto owner = static_cast<uint32_t>(i % ranks);
      const uint32_t full = ptx::cluster_address(inbox.full, owner);
      ptx::store_async_cluster(
          ptx::cluster_address(&inbox.output[rank][i / ranks], owner),
          Vector<float, 4>{partial.output[0], partial.output[1], partial.output[2], partial.output[3]}, full);
      ptx::store_async_cluster(ptx::cluster_address(&inbox.sums[rank][i / ranks], owner),
                               Vector<float, 2>{partial.maximum, partial.sum}, full);
    });
    if (static_cast<int>(Team::rank()) >= own) return;
    ptx::mbarrier_wait_cluster(inbox.full, 0);  // then no block writes here any more, and this one may end
    for (int j = static_cast<int>(Team::rank()); j < own; j += threads) {
      const int i = j * ranks + rank, r = i / (C.value_size / 4), d = i % (C.value_size / 4) * 4;
      float top = -infinity();
#pragma unroll
      for (int from = 0; from < ranks; ++from) top = fmaxf(top, inbox.sums[from][j][0]);
      PartialRow partial;
#pragma unroll
      for (int from = 0; from < ranks; ++from)
        partial.add(inbox.sums[from][j][0], inbox.sums[from][j][1], inbox.output[from][j], top);
      write_row<C>(p, at.tile, at.head, r, d, partial);
    }
#endif
  }
};

template <DecodeConfig C>
struct DecodeClusterTask {
  using Params = DecodeParams;

  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team, char*) {
#if CERMET_ARCH >= 900
    touch_parameters<0, sizeof(Params)>(p);
    DecodeSplit<C, Team>::fetch(p.a, item, static_cast<int>(Team::rank()));
#endif
  }
  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team, char* smem) {
    DecodeCluster<C, Team>::compute(p, item, smem);
  }
};

}  // namespace cermet::attention
