// Decoding attention over a paged cache: keys and values stream through shared memory once for all heads that share
// them, several tiles ahead of the tensor cores. Every warp has its own tiles, stages and softmax; the warps of a block
// meet only at the end of a span. Work item i is the i-th share of all units (decode_config.hpp). The items that share
// a span leave their parts in the scratch (decode_parts.cuh), where one of them adds them up.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"
#include "kernel/cuda/device/tile/parameters.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct Decode {
  using Params = DecodeParams;
  using Block = DecodeBlock<C, Team>;
  using Load = typename Block::Load;
  using Tile = typename Block::Tile;
  using Planner = Plan<Load::plan>;
  using Whole = WholeSpans<Load::plan>;
  using AllParts = Parts<C.rows, C.value_size, Team>;
  static constexpr int stages = C.stages;

  static CERMET_DEVICE void run(const Params& params, uint32_t item, char* smem) {
    const attention::Params& p = params.a;
    const typename Block::Shared shared(smem);
    Block::prepare(shared);
    const int block = static_cast<int>(item);
    Place ahead;
    int units = 0, blocks = params.thread_blocks, to_load = 0, page = 0, free_stage = 0;
    uint32_t broken = 0;  // bit s: the tile in stage s needs a page that does not exist
    const auto load_next = [&] {
      if (to_load > 0) {
        const bool missing = Load::start(p, ahead, page, shared.stage + free_stage * Block::stage_bytes);
        broken = (broken & ~(1u << free_stage)) | static_cast<uint32_t>(missing) << free_stage;
        if (--to_load > 0) {
          if (ahead.ends_span()) Planner::next_span(p, ahead);
          else ++ahead.unit;
          page = Load::find_page(p, ahead);
        }
      } else {
        ptx::cp_async_commit();
      }
      free_stage = free_stage + 1 == stages ? 0 : free_stage + 1;
    };
    Share share{0, 0};
    typename Tile::RawQueries raw_queries;
    bool whole_spans = false;
    if constexpr (C.whole) {
      whole_spans = Whole::begin(p, block, blocks, ahead);
      if (whole_spans && ahead.tile.units > 0) {  // asks for keys before that is known for sure
        share.end = to_load = ahead.tile.units;
        Tile::read_queries(p, ahead.tile, ahead.head, raw_queries);
        page = Load::find_page(p, ahead);
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
    if (!whole_spans) share = Planner::begin(p, block, params.least_units, blocks, ahead, units);
    int left = share.end - share.begin, stage = 0, lead = 0;
    if (left == 0) return;
    Place at = ahead;
    typename Tile::Queries queries;
    typename Tile::State state;
    if (whole_spans) {
      at.unit = 0;
      lead = stages - 1;
      Tile::pack_queries(raw_queries, queries);
      state.clear();
    } else {
      to_load = left;
      page = Load::find_page(p, ahead);
    }
    const Place begin = at;
    const AllParts parts{p.partials, blocks};
    bool from_start = at.unit == 0, first_span = true;
    while (true) {
      load_next();
      if (lead < stages - 1) {
        if (lead++ == 0) Tile::load_queries(p, at.tile, at.head, queries), state.clear();
        continue;
      }
      Block::wait();
      Block::consume(params, at, queries, state, shared.stage + stage * Block::stage_bytes, broken >> stage & 1u);
      const bool ends = at.ends_span(), last = --left == 0;
      if (ends || last) {
        float* part = parts.part(block, first_span ? 0 : 1);
        const bool whole = ends && from_start;
        add_warps<C, Team>(shared, at.tile.rows, state, stage, [&](int, int r, int d, const RowPart& x) {
          if (whole) write_row<C>(p, at.tile, at.head, r, d, x);
          else AllParts::write(part, r, d, x);
        });
        if (Team::together ? !ends : !whole) parts.announce(block, first_span ? 0 : 1);
      }
      if (last) break;
      if (ends) {
        Planner::next_span(p, at);
        Tile::load_queries(p, at.tile, at.head, queries);
        state.clear();
        from_start = true;
        first_span = false;
      } else {
        ++at.unit;
      }
      if (++stage == stages) stage = 0;
      __syncwarp();  // all lanes have read the tile, whose stage is filled next
    }
    const bool ends_first = begin.tile.units - begin.unit <= share.end - share.begin;
    if constexpr (Team::together) {
      if (begin.unit > 0 && ends_first)
        merge<C, Team>(p, begin, parts, units, share.begin - begin.unit, block, shared.outputs(0, 0));
    } else {
      // The span that the share begins in, where others hold a part of it, and the one that it ends in, where that is
      // another.
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        const bool is_shared = i == 0 ? begin.unit > 0 || !ends_first : !at.ends_span() && !first_span;
        if (!is_shared) continue;
        Place span = begin;
        if (i == 1) span = at;
        const int first_unit = i == 0 ? share.begin - begin.unit : share.end - 1 - at.unit;
        merge<C, Team>(p, span, parts, units, first_unit,
                       holder_of(units, first_unit + span.tile.units - 1, parts.blocks), shared.outputs(0, 0));
      }
    }
  }
};

template <DecodeConfig C>
struct DecodeTask {
  using Params = DecodeParams;
  static constexpr bool one_item = C.whole;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team, char* smem) {
    Decode<C, Team>::run(p, item, smem);
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
