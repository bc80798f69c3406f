// A block's share of a span of decoding attention whose tiles of keys are dealt out to the blocks in turn: which pages a block needs first does not depend on
// the length of the context, so that their numbers are read together with it. Work item i is block i % ranks of span i / ranks.
#pragma once

#include "kernel/cuda/device/attention/decode_block.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct DecodeSpan {
  using Block = DecodeBlock<C, Team>;
  using Load = typename Block::Load;
  using Tile = typename Block::Tile;
  using Planner = Plan<Load::plan>;
  static constexpr int ranks = C.ranks, stages = C.stages;

#if CERMET_ARCH >= 900
  /// While earlier launches run: asks the L2 for the keys and values that this block will probably read. They may not
  /// all be written, and neither may the lengths and tables; what is fetched too early or needlessly costs a little
  /// time, never correctness. By threads that count themselves as `thread`.
  static __device__ __forceinline__ void fetch(const Params& p, uint32_t item, int thread) {
    if (!Load::one_page || p.sequences == 0) return;
    const int rank = static_cast<int>(item % ranks), span = static_cast<int>(item / ranks), head = span % p.kv_heads;
    const int sequence = min_of(span / p.kv_heads, p.sequences - 1);
    constexpr int most_tiles = C.ahead / Block::stage_bytes;
    const int first = (thread * ranks + rank) * Load::keys, index = first / C.block;
    if (thread >= most_tiles || index >= p.pages) return;
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
  static __device__ __forceinline__ void warm(const Params& p, uint32_t item) {
    const int lane = static_cast<int>(lane_index()), rank = static_cast<int>(item % ranks), tile = static_cast<int>(item / ranks) / C.kv_heads;
    const int likely = min_of(tile, p.sequences - 1), page = (lane * ranks + rank) * Load::keys / C.block;
    if (p.query_starts && lane <= p.sequences) ptx::touch(static_cast<const int32_t*>(p.query_starts) + lane);
    if (lane == 0) ptx::touch(p.context_lens + likely);
    if (page < p.pages) ptx::touch(p.block_tables + likely * p.table_stride + page);
  }

  /// Whether there is such a span, and where the block begins in it. Called by whole warps.
  static __device__ __forceinline__ bool begin(const Params& p, uint32_t item, Place& at) {
    const int rank = static_cast<int>(item % ranks), span = static_cast<int>(item / ranks);
    const TilePlace place = place_of(p, span / C.kv_heads, C.group, C.rows, true);
    if (place.sequence < 0) return false;
    at.tile = Planner::row_tile(p, place.sequence, place.index);
    at.tile_index = place.index;
    at.head = span % C.kv_heads;
    at.unit = 0;
    at.rank = rank;
    return true;
  }

  /// A warp's way through its tiles, several of which are on their way.
  struct Flow {
    Place ahead;  ///< of the next tile to load
    int page, free_stage = 0;
    uint32_t broken = 0;  ///< bit s: the tile in stage s needs a page that does not exist
    typename Tile::RawQueries queries;

    __device__ __forceinline__ void load_next(const Params& p, const typename Block::Shared& shared) {
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
    }
  };

  /// Asks for queries and for as many tiles as there are stages.
  static __device__ __forceinline__ void start(const Params& p, const Place& at, const typename Block::Shared& shared, Flow& flow) {
    Tile::read_queries(p, at.tile, at.head, flow.queries);
    flow.ahead = at;
    flow.page = Load::find_page(p, at);
#pragma unroll 1
    for (int i = 0; i < stages; ++i) flow.load_next(p, shared);
  }

  /// Every warp's tiles, each through the online softmax, or several at a time.
  static __device__ __forceinline__ void attend(const DecodeParams& params, Place at, const typename Block::Shared& shared, Flow& flow,
                                                typename Tile::State& state) {
    static_assert(stages % C.joined == 0);
    typename Tile::Queries queries;
    Tile::pack_queries(flow.queries, queries);
    state.clear();
    for (int stage = 0; Load::first_key(at) < at.tile.end_key; at.unit += C.joined) {
      Block::template wait<C.joined>();
      const char* const tile = shared.stage + stage * Block::stage_bytes;
      const bool broken = (flow.broken >> stage & ((1u << C.joined) - 1)) != 0;
      if (C.joined == 1 || Load::first_key(at) + (C.joined - 1) * Load::next_tile < at.tile.end_key)
        Block::template consume<C.joined>(params, at, queries, state, tile, broken);
      else consume_one_by_one(params, at, queries, state, tile, broken);
      stage = stage + C.joined == stages ? 0 : stage + C.joined;
      __syncwarp();  // all lanes have read the tiles, whose stages are filled next
#pragma unroll
      for (int t = 0; t < C.joined; ++t) flow.load_next(params.a, shared);
    }
  }
  /// Fewer tiles than go through the softmax together.
  static __device__ __forceinline__ void consume_one_by_one(const DecodeParams& params, Place at, const typename Tile::Queries& queries,
                                                            typename Tile::State& state, const char* tile, bool broken) {
#pragma unroll 1
    for (int t = 0; t + 1 < C.joined; ++t, ++at.unit) Block::consume(params, at, queries, state, tile + t * Block::stage_bytes, broken);
  }
};

}  // namespace cermet::attention
