// Decoding attention with few spans and not too many keys: a cluster of thread blocks has one span, so that its parts are added up in the cluster's
// shared memory. The tiles of keys are dealt out in turn; which pages a block needs first does not depend on the length of the context, so that their
// numbers are read together with it. Work item i is block i % ranks of the cluster for span i / ranks. The launch has as many blocks as items.
#pragma once

#include "kernel/cuda/device/attention/decode_block.cuh"
#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/tile/parameters.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeCluster {
  using Params = DecodeParams;
  using Block = DecodeBlock<C, Team>;
  using Load = typename Block::Load;
  using Tile = typename Block::Tile;
  using Planner = Plan<Load::plan>;
  static constexpr int ranks = C.ranks, threads = Block::threads, stages = C.stages, most_each = decode_inbox_each(C.rows, C.value_size, ranks);

  /// Parts of those rows' elements that this block adds up, from every block of the cluster.
  struct Inbox {
    Vector<float, 4> output[ranks][most_each];
    Vector<float, 2> sums[ranks][most_each];  ///< maximum and sum
    uint64_t full[2];                         ///< the first: a barrier that counts the bytes
  };
  static_assert(sizeof(Inbox) == decode_inbox_bytes(C.rows, C.value_size, ranks));

#if CERMET_ARCH >= 900
  /// While earlier launches run: asks the L2 for the keys and values that this block will probably read. They may not
  /// all be written, and neither may the lengths and tables; what is fetched too early or needlessly costs a little
  /// time, never correctness.
  static __device__ __forceinline__ void fetch(const Params& params, uint32_t item) {
    const attention::Params& p = params.a;
    touch_parameters<0, sizeof(Params)>(params);
    if (!Load::one_page || p.sequences == 0) return;
    const int rank = static_cast<int>(item % ranks), span = static_cast<int>(item / ranks), head = span % p.kv_heads;
    const int sequence = min_of(span / p.kv_heads, p.sequences - 1);
    constexpr int most_tiles = decode_prefetch_bytes / Block::stage_bytes;
    const int tile = static_cast<int>(Team::rank()), first = (tile * ranks + rank) * Load::keys, index = first / C.block;
    if (tile >= most_tiles || index >= p.pages) return;
    const int keys = ptx::load_l2(p.context_lens + sequence);
    const int page = ptx::load_l2(p.block_tables + sequence * p.table_stride + index);
    if (first >= keys || (p.window > 0 && first + Load::keys <= keys - p.window) || page < 0 || page >= p.blocks) return;
    ask<C.head_size>(p.k, head, page, first % C.block);
    ask<C.value_size>(p.v, head, page, first % C.block);
  }
  template <int Size>
  static __device__ __forceinline__ void ask(const KeyList& list, int head, int page, int row) {
    const char* from = static_cast<const char*>(list.data) + 2 * (page * list.page_stride + row * list.row_stride + head * list.head_stride);
    if (reinterpret_cast<uintptr_t>(from) % 16 != 0 || list.row_stride % 8 != 0) return;
    if (list.row_stride == Size) return ptx::prefetch_l2(from, 2 * Size * Load::keys);
#pragma unroll 1
    for (int r = 0; r < Load::keys; ++r) ptx::prefetch_l2(from + 2 * r * list.row_stride, 2 * Size);
  }
#endif

  /// Prefetches into the L1 what the plan of a decoding step reads, all at once; later reads that depend on each other
  /// find it there.
  static __device__ __forceinline__ void warm(const attention::Params& p, int tile, int rank) {
    const int lane = static_cast<int>(lane_index()), likely = min_of(tile, p.sequences - 1), page = (lane * ranks + rank) * Load::keys / C.block;
    if (p.query_starts && lane <= p.sequences) ptx::touch(static_cast<const int32_t*>(p.query_starts) + lane);
    if (lane == 0) ptx::touch(p.context_lens + likely);
    if (page < p.pages) ptx::touch(p.block_tables + likely * p.table_stride + page);
  }

  static __device__ __forceinline__ void compute(const Params& params, uint32_t item, char* smem) {
#if CERMET_ARCH >= 900
    const attention::Params& p = params.a;
    const int rank = static_cast<int>(item % ranks), span = static_cast<int>(item / ranks);
    Inbox& inbox = *reinterpret_cast<Inbox*>(smem + decode_shared_bytes(C.head_size, C.value_size, C.tile_keys, C.warps, C.stages, C.rows));
    warm(p, span / C.kv_heads, rank);
    if (Team::rank() == 0) {
      ptx::mbarrier_init(inbox.full, 1);
      ptx::fence_mbarrier_init();
    }
    ptx::cluster_arrive_relaxed();  // the others wait for it before they send
    const typename Block::Shared shared(smem);
    Block::prepare(shared);
    const TilePlace place = place_of(p, span / C.kv_heads, C.group, C.rows, true);
    if (place.sequence < 0) return ptx::cluster_wait();  // as do all blocks of the cluster
    Place at{Planner::row_tile(p, place.sequence, place.index), place.index, span % C.kv_heads, 0};
    typename Tile::RawQueries raw_queries;
    Tile::read_queries(p, at.tile, at.head, raw_queries);
    Place ahead = at;
    int page = Load::find_page(p, ahead), free_stage = 0, stage = 0;
    uint32_t broken = 0;  // bit s: the tile in stage s needs a page that does not exist
    const auto load_next = [&] {
      bool missing = false;
      if (Load::first_key(ahead) < ahead.tile.end_key) {
        missing = Load::start(p, ahead, page, shared.stage + free_stage * Block::stage_bytes);
        ++ahead.unit;
        page = Load::find_page(p, ahead);
      } else {
        ptx::cp_async_commit();
      }
      broken = (broken & ~(1u << free_stage)) | static_cast<uint32_t>(missing) << free_stage;
      free_stage = free_stage + 1 == stages ? 0 : free_stage + 1;
    };
    for (int i = 1; i < stages; ++i) load_next();
    typename Tile::Queries queries;
    typename Tile::State state;
    Tile::pack_queries(raw_queries, queries);
    state.clear();
    for (; Load::first_key(at) < at.tile.end_key; ++at.unit) {
      load_next();
      Block::wait();
      Block::consume(params, at, queries, state, shared.stage + stage * Block::stage_bytes, broken >> stage & 1u);
      if (++stage == stages) stage = 0;
      __syncwarp();  // all lanes have read the tile, whose stage is filled next
    }
    const int rows = at.tile.rows, own = (rows * (C.value_size / 4) - rank + ranks - 1) / ranks;  // groups of elements are dealt out in turn, too
    if (Team::rank() == 0 && own > 0) ptx::mbarrier_arrive_expect(inbox.full, static_cast<uint32_t>(own * ranks * 24));
    ptx::cluster_wait();
    // Through stage 0: warps may have had different numbers of tiles, but none has copies under way.
    Block::add_warps(shared, rows, state, 0, [&](int i, int, int, const RowPart& part) {
      const auto owner = static_cast<uint32_t>(i % ranks);
      const uint32_t full = ptx::cluster_address(inbox.full, owner);
      ptx::store_async_cluster(ptx::cluster_address(&inbox.output[rank][i / ranks], owner),
                               Vector<float, 4>{part.output[0], part.output[1], part.output[2], part.output[3]}, full);
      ptx::store_async_cluster(ptx::cluster_address(&inbox.sums[rank][i / ranks], owner), Vector<float, 2>{part.maximum, part.sum}, full);
    });
    if (static_cast<int>(Team::rank()) >= own) return;
    ptx::mbarrier_wait_cluster(inbox.full, 0);  // then no block writes here any more, and this one may end
    for (int j = static_cast<int>(Team::rank()); j < own; j += threads) {
      const int i = j * ranks + rank, r = i / (C.value_size / 4), d = i % (C.value_size / 4) * 4;
      float top = -infinity();
#pragma unroll
      for (int from = 0; from < ranks; ++from) top = fmaxf(top, inbox.sums[from][j][0]);
      RowPart part;
#pragma unroll
      for (int from = 0; from < ranks; ++from) part.add(inbox.sums[from][j][0], inbox.sums[from][j][1], inbox.output[from][j], top);
      write_row<C>(p, at.tile, at.head, r, d, part);
    }
#endif
  }
};

template <DecodeConfig C>
struct DecodeClusterTask {
  using Params = DecodeParams;

  template <class Team>
  static __device__ __forceinline__ void fetch(const Params& p, uint32_t item, Team, char*) {
#if CERMET_ARCH >= 900
    DecodeCluster<C, Team>::fetch(p, item);
#endif
  }
  template <class Team>
  static __device__ __forceinline__ void compute(const Params& p, uint32_t item, Team, char* smem) {
    DecodeCluster<C, Team>::compute(p, item, smem);
  }
};

}  // namespace cermet::attention
