// A block's share of a span of decoding attention whose tiles of keys are dealt out to the blocks in turn: which pages
// a block needs first does not depend on the length of the context, so that their numbers are read together with it.
// Work item i is block i % ranks of span i / ranks.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeSplit {
  using Mainloop = DecodeMainloop<C, Team>;
  using Load = typename Mainloop::Load;
  using Mma = typename Mainloop::Mma;
  using Scheduler = DecodeScheduler<Load::scheduler>;
  static constexpr int ranks = C.ranks, stages = C.stages;

#if CERMET_ARCH >= 900
  /// While earlier launches run: prefetches into the L2 the keys and values that this block will probably read. They
  /// may not all be written, and neither may the lengths and tables; what is fetched too early or needlessly costs a
  /// little time, never correctness. By threads that count themselves as `thread`.
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, int thread) {
    if (!Load::one_page || p.sequences == 0) return;
    const int rank = static_cast<int>(item % ranks), span = static_cast<int>(item / ranks), head = span % p.kv_heads;
    const int sequence = min_of(span / p.kv_heads, p.sequences - 1);
    constexpr int most_tiles = decode_prefetch_bytes / Mainloop::stage_bytes;
    const int first = (thread * ranks + rank) * Load::keys, index = first / C.block;
    if (thread >= most_tiles || index >= p.pages) return;
    const int keys = ptx::load_l2(p.context_lens + sequence);
    const int page = ptx::load_l2(p.block_tables + sequence * p.table_stride + index);
    if (first >= keys || (p.window > 0 && first + Load::keys <= keys - p.window) || page < 0 || page >= p.blocks)
      return;
    prefetch<C.head_size>(p.k, head, page, first % C.block);
    prefetch<C.value_size>(p.v, head, page, first % C.block);
  }
  template <int Size>
  static CERMET_DEVICE void prefetch(const KeyList& list, int head, int page, int row) {
    const char* from = static_cast<const char*>(list.data) +
                       Load::bytes * (page * list.page_stride + row * list.row_stride + head * list.head_stride);
    if (reinterpret_cast<uintptr_t>(from) % 16 != 0 || list.row_stride % (16 / Load::bytes) != 0) return;
    if (list.row_stride == Size) return ptx::prefetch_l2(from, Load::bytes * Size * Load::keys);
#pragma unroll 1
    for (int r = 0; r < Load::keys; ++r) ptx::prefetch_l2(from + Load::bytes * r * list.row_stride, Load::bytes * Size);
  }
#endif

  /// Prefetches into the L1 what the scheduler of a decoding step reads, all at once; later reads that depend on each
  /// other find it there.
  static CERMET_DEVICE void prefetch_tables(const Params& p, uint32_t item) {
    const int lane = static_cast<int>(lane_index()), rank = static_cast<int>(item % ranks),
              tile = static_cast<int>(item / ranks) / C.kv_heads;
    const int likely = min_of(tile, p.sequences - 1), page = (lane * ranks + rank) * Load::keys / C.block;
    if (p.query_starts && lane <= p.sequences) ptx::touch(static_cast<const int32_t*>(p.query_starts) + lane);
    if (lane == 0) ptx::touch(p.context_lens + likely);
    if (page < p.pages) ptx::touch(p.block_tables + likely * p.table_stride + page);
  }

  /// Whether there is such a span, and where the block begins in it. Called by whole warps.
  static CERMET_DEVICE bool begin(const Params& p, uint32_t item, WorkUnit& at) {
    const int rank = static_cast<int>(item % ranks), span = static_cast<int>(item / ranks);
    const TilePlace place = place_of(p, span / C.kv_heads, C.group, C.rows, true);
    if (place.sequence < 0) return false;
    at.tile = Scheduler::row_tile(p, place.sequence, place.index);
    at.tile_index = place.index;
    at.head = span % C.kv_heads;
    at.unit = 0;
    at.rank = rank;
    return true;
  }

  /// Every warp's tiles, each through the online softmax.
  static CERMET_DEVICE void attend(const DecodeParams& params, WorkUnit at, const typename Mainloop::Shared& shared,
                                   typename Mma::State& state) {
    const Params& p = params.a;
    typename Mma::RawQueries raw_queries;
    Mma::read_queries(p, at.tile, at.head, raw_queries);
    WorkUnit ahead = at;
    int page = Load::find_page(p, ahead), free_stage = 0, stage = 0;
    uint32_t page_missing = 0;  // bit s: the tile in stage s needs a page that does not exist
    const auto load_next = [&] {
      bool missing = false;
      if (Load::first_key(ahead) < ahead.tile.end_key) {
        missing = Load::start(p, ahead, page, shared.stage + free_stage * Mainloop::stage_bytes);
        ++ahead.unit;
        page = Load::find_page(p, ahead);
      } else {
        ptx::cp_async_commit();
      }
      page_missing = (page_missing & ~(1u << free_stage)) | static_cast<uint32_t>(missing) << free_stage;
      free_stage = free_stage + 1 == stages ? 0 : free_stage + 1;
    };
    for (int i = 1; i < stages; ++i) load_next();
    typename Mma::Queries queries;
    Mma::pack_queries(raw_queries, queries);
    Mma::begin_span(p, at.head, queries, state);
    for (; Load::first_key(at) < at.tile.end_key; ++at.unit) {
      load_next();
      Mainloop::wait();
      Mainloop::consume(params, at, queries, state, shared.stage + stage * Mainloop::stage_bytes,
                        page_missing >> stage & 1u);
      if (++stage == stages) stage = 0;
      __syncwarp();  // all lanes have read the tile, whose stage is filled next
    }
  }
};

}  // namespace cermet::attention
