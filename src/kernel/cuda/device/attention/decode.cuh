// Decoding attention over a paged cache: split-KV attention of few queries (flash decoding).
//
// Problem        o[token, head] = softmax(scale * q[token, head] k^T) v, online over the keys. q: [tokens, heads, D];
//                k, v: pages [block, kv_heads, D or Dv] of 16-bit elements; lse, sinks, alibi, softcap and window as
//                the operator defines them.
// Tiles          query tile  [8 or 16 rows, D]: queries of a sequence times the `group` heads of a key-value head
//                KV tile     [tile_keys, D] keys and [tile_keys, Dv] values of one warp, tile_keys 16 or 32
//                unit        `warps` KV tiles side by side, one for each warp
//                span        all units of one query tile and one key-value head
// Scheduler      All units of all spans in order are dealt out evenly to the blocks (decode_scheduler.cuh): a block's
//                share begins and ends anywhere, so that num_splits differs from span to span. Or, where lengths are
//                about the same, each block has a whole span.
// Shared memory  0  maxima and sums [warps][rows][2] of float32, padded to 128 bytes
//                +  for each warp `stages` times a KV tile: keys [tile_keys, D], values [tile_keys, Dv], swizzled;
//                   the epilogue exchanges outputs through the stage that was read last
// Warps          All do the same, each with its own KV tiles, stages, copies (cp.async) and online softmax; they meet
//                only at the end of a span. There is no producer warp.
// Registers      of a lane: queries [D / 16][4] as operand A; scores [tile_keys / 8][4]; output [2 * Dv / 16][4],
// maxima
//                and sums of one or two rows
// Phases         1. scheduler: the block's share and its first unit, from the lengths in device memory
//                2. mainloop (decode_mainloop.cuh): loads stages - 1 tiles ahead; QK, scale and mask, softmax, PV
//                3. epilogue (decode_epilogue.cuh): combines the warps' partials, and writes the rows where the block
//                   had all units of the span; otherwise leaves its partial in the scratch
//                4. combine: of the blocks that have partials of a span, one combines them and writes the rows
// Two more kernels deal out the KV tiles of a span to a fixed number of blocks: decode_cluster.cuh, decode_pieces.cuh.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"
#include "kernel/cuda/device/overlap.cuh"

namespace cermet::attention {

template <DecodeConfig C>
struct DecodeTask {
  using Params = DecodeParams;
  static constexpr bool one_item = C.whole;
  static constexpr int stages = C.stages;

  template <class Team>
  static CERMET_DEVICE void run(const Params& params, uint32_t item, Team, char* smem) {
    using Mainloop = DecodeMainloop<C, Team>;
    using Load = typename Mainloop::Load;
    using Mma = typename Mainloop::Mma;
    using Scheduler = DecodeScheduler<Load::scheduler>;
    using Whole = WholeSpanScheduler<Load::scheduler>;
    using SpanPartials = Partials<C.rows, C.value_size, Team>;
    const attention::Params& p = params.a;
    const typename Mainloop::Shared shared(smem);
    Mainloop::prepare(shared);
    const int block = static_cast<int>(item);
    // Phase 1: scheduler
    WorkUnit load_at;  // of the next load
    int units = 0, blocks = params.thread_blocks, loads_left = 0, page = 0, free_stage = 0;
    uint32_t page_missing = 0;  // bit s: the tile in stage s needs a page that does not exist
    const auto load_next = [&] {
      if (loads_left > 0) {
        const bool missing = Load::start(p, load_at, page, shared.stage + free_stage * Mainloop::stage_bytes);
        page_missing = (page_missing & ~(1u << free_stage)) | static_cast<uint32_t>(missing) << free_stage;
        if (--loads_left > 0) {
          if (load_at.ends_span()) Scheduler::next_span(p, load_at);
          else ++load_at.unit;
          page = Load::find_page(p, load_at);
        }
      } else {
        ptx::cp_async_commit();
      }
      free_stage = free_stage + 1 == stages ? 0 : free_stage + 1;
    };
    Share share{0, 0};
    typename Mma::RawQueries raw_queries;
    bool whole_spans = false;
    if constexpr (C.whole) {
      whole_spans = Whole::begin(p, block, blocks, load_at);
      if (whole_spans && load_at.tile.units > 0) {  // loads keys before that is known for sure
        share.end = loads_left = load_at.tile.units;
        Mma::read_queries(p, load_at.tile, load_at.head, raw_queries);
        page = Load::find_page(p, load_at);
#pragma unroll 1
        for (int i = 1; i < stages; ++i) load_next();
      }
      if (whole_spans && !Whole::fits(p, blocks)) {
        whole_spans = false;
        ptx::cp_async_wait<0>();
        __syncwarp();  // stages are filled anew, by other lanes
        free_stage = 0;
      }
    }
    if (!whole_spans) share = Scheduler::begin(p, block, params.least_units, blocks, load_at, units);
    int units_left = share.end - share.begin, stage = 0, loads_ahead = 0;
    if (units_left == 0) return;
    WorkUnit at = load_at;
    typename Mma::Queries queries;
    typename Mma::State state;
    if (whole_spans) {
      at.unit = 0;
      loads_ahead = stages - 1;
      Mma::pack_queries(raw_queries, queries);
      Mma::begin_span(p, at.head, queries, state);
    } else {
      loads_left = units_left;
      page = Load::find_page(p, load_at);
    }
    // Phases 2 and 3: mainloop, and the epilogue at the end of every span and of the share
    const WorkUnit begin = at;
    const SpanPartials partials{p.partials, blocks};
    bool starts_span = at.unit == 0, first_span = true;
    while (true) {
      load_next();
      if (loads_ahead < stages - 1) {
        if (loads_ahead++ == 0) {
          Mma::load_queries(p, at.tile, at.head, queries);
          Mma::begin_span(p, at.head, queries, state);
        }
        continue;
      }
      Mainloop::wait();
      Mainloop::consume(params, at, queries, state, shared.stage + stage * Mainloop::stage_bytes,
                        page_missing >> stage & 1u);
      const bool ends = at.ends_span(), last = --units_left == 0;
      if (ends || last) {
        float* partial = partials.partial(block, first_span ? 0 : 1);
        const bool whole = ends && starts_span;
        combine_warps<C, Team>(shared, at.tile.rows, state, stage, [&](int, int r, int d, const PartialRow& x) {
          if (whole) write_row<C>(p, at.tile, at.head, r, d, x);
          else SpanPartials::write(partial, r, d, x);
        });
        if (Team::together ? !ends : !whole) partials.publish(block, first_span ? 0 : 1);
      }
      if (last) break;
      if (ends) {
        Scheduler::next_span(p, at);
        Mma::load_queries(p, at.tile, at.head, queries);
        Mma::begin_span(p, at.head, queries, state);
        starts_span = true;
        first_span = false;
      } else {
        ++at.unit;
      }
      if (++stage == stages) stage = 0;
      __syncwarp();  // all lanes have read the tile, whose stage is filled next
    }
    // Phase 4: combine
    for_shared_spans<Team>(begin, at, share, units, partials.blocks, block, first_span,
                           [&](const WorkUnit& span, int first_unit, int last) {
                             combine<C, Team>(p, span, partials, units, first_unit, last, shared.outputs(0, 0));
                           });
  }

  /// With whole spans a block has so little to do that it should not wait for its parameters.
  template <class Team>
  requires(C.whole) static CERMET_DEVICE void fetch(const Params& p, uint32_t, Team, char*) {
#if CERMET_ARCH >= 900
    touch_parameters<0, sizeof(Params)>(p);
#endif
  }
  template <class Team>
  requires(C.whole) static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem) {
    run(p, item, team, smem);
  }
};

}  // namespace cermet::attention
