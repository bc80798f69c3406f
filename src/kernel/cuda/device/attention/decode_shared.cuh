// Decoding attention whose warps share tiles of keys and values, which are copied once: several queries of a sequence,
// and heads too wide for a warp.
//
// Problem        that of decode.cuh. Rows (queries of a sequence times the heads of a key-value head) see nearly the
// same
//                keys: speculative decoding, last tokens of prompts. Heads up to 576 columns; values may be the first
//                columns of the keys (multi-head latent attention), which are then copied once.
// Tiles          warps that have rows (decode_rows.cuh): query tile [64, D], 16 rows of a warp, or of two
//                warps that have columns (decode_columns.cuh): query tile [16 or 32, D], 4 warps for 16 rows
//                unit        one or two KV tiles of 32 keys
// Scheduler      as in decode.cuh: all units of all spans in order are dealt out evenly to the blocks
// Shared memory  0  what warps exchange: maxima, sums; of warps that have columns also queries and weights
//                +  `stages` units: keys, values, and scales of tokens, swizzled; outputs leave through the one that
//                was
//                   read last
// Phases         for each unit: wait for its copies, barrier, start those of the unit `stages` - 1 ahead, QK, scale and
//                mask, softmax, PV. At the end of a span each warp writes its rows, or leaves them in the scratch,
//                where the block that has the span's last unit combines them.
// Bytes          keys and values once, whatever the number of queries. D = 128, 8 key-value heads, 64 sequences of 4096
//                tokens: 1.07 GB, 338 us at 3.18 TB/s. A warp has 128 products of 16 x 8 x 16 (192 with `strict`) for
//                64 keys, 32 KiB, which arrive in 2260 cycles of an SM. Predicted: 1.05 of the time of one query for 16
//                rows, 1.2 for 64.
#pragma once

#include "kernel/cuda/device/attention/decode_columns.cuh"
#include "kernel/cuda/device/attention/decode_rows.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team, bool HasColumns = (C.column_parts > 0)>
struct SharedTileWarpsOf {
  using type = DecodeRows<C, Team>;
};
template <DecodeConfig C, class Team>
struct SharedTileWarpsOf<C, Team, true> {
  using type = DecodeColumns<C, Team>;
};
template <DecodeConfig C, class Team>
using SharedTileWarps = typename SharedTileWarpsOf<C, Team>::type;

template <DecodeConfig C>
struct DecodeSharedTask {
  using Params = DecodeParams;

  template <class Team>
  static CERMET_DEVICE void run(const Params& params, uint32_t item, Team, char* smem) {
    using Warps = SharedTileWarps<C, Team>;
    using Load = typename Warps::Load;
    using Scheduler = DecodeScheduler<Load::scheduler>;
    using SpanPartials = Partials<C.rows, C.value_size, Team>;
    const attention::Params& p = params.a;
    const typename Warps::Shared shared(smem);
    const int block = static_cast<int>(item);
    // Phase 1: scheduler
    WorkUnit load_at;  // of the next load
    int units = 0, blocks = params.thread_blocks;
    const Share share = Scheduler::begin(p, block, params.least_units, blocks, load_at, units);
    if (share.begin == share.end) return;
    WorkUnit at = load_at;
    typename Load::Pages pages;
    Load::find_pages(p, load_at, pages);
    int loads_left = share.end - share.begin, units_left = loads_left, free_stage = 0, stage = 0;
    uint32_t page_missing = 0;  // bit s: the tile in stage s needs a page that does not exist
    const auto load_next = [&] {
      if (loads_left > 0) {
        const bool missing = Load::start(p, load_at, pages, shared.stage(free_stage));
        page_missing = (page_missing & ~(1u << free_stage)) | static_cast<uint32_t>(missing) << free_stage;
        if (--loads_left > 0) {
          if (load_at.ends_span()) Scheduler::next_span(p, load_at);
          else ++load_at.unit;
          Load::find_pages(p, load_at, pages);
        }
      } else {
        ptx::cp_async_commit();
      }
      free_stage = free_stage + 1 == C.stages ? 0 : free_stage + 1;
    };
#pragma unroll 1
    for (int i = 1; i < C.stages; ++i) load_next();
    Warps warps;
    warps.begin_span(p, shared, at);
    // Phases 2 and 3: mainloop, and the epilogue at the end of every span and of the share
    const WorkUnit begin = at;
    const SpanPartials partials{p.partials, blocks};
    bool starts_span = at.unit == 0, first_span = true;
    while (true) {
      ptx::cp_async_wait<C.stages - 2>();
      Team::sync();  // all warps' copies of the tile are there, and all have read the one before
      load_next();
      warps.consume(params, shared, at, shared.stage(stage), page_missing >> stage & 1u);
      const bool ends = at.ends_span(), last = --units_left == 0;
      if (ends || last) {
        float* partial = partials.partial(block, first_span ? 0 : 1);
        const bool whole = ends && starts_span;
        Team::sync();
        warps.for_quads(shared, at.tile, shared.stage(stage), [&](int r, int d, const PartialRow& x) {
          if (whole) write_row<C>(p, at.tile, at.head, r, d, x);
          else SpanPartials::write(partial, r, d, x);
        });
        if (!whole) {
          Team::sync();
          if (!Team::together || !ends) partials.publish(block, first_span ? 0 : 1);
        }
      }
      if (last) break;
      if (ends) {
        Scheduler::next_span(p, at);
        warps.begin_span(p, shared, at);
        starts_span = true;
        first_span = false;
      } else {
        ++at.unit;
      }
      if (++stage == C.stages) stage = 0;
    }
    // Phase 4: combine
    const auto combine = [&](const WorkUnit& span, int first_unit, int last) {
      const int first = block_of_unit(units, first_unit, blocks),
                first_number = share_of(units, first, blocks).begin < first_unit ? 1 : 0;
      if constexpr (Team::together) partials.wait(first, last - 1);
      else if (!partials.take_if_complete(first, last, first_number)) return;
      combine_rows<C, Team>(p, span, first, last,
                            [&](int i) { return partials.partial(i, i == first ? first_number : 0); });
    };
    for_shared_spans<Team>(begin, at, share, units, blocks, block, first_span, combine);
  }
};

}  // namespace cermet::attention
