// Decoding attention over a paged cache: keys and values stream through shared memory once for all heads that share
// them, several tiles ahead of the tensor cores. Every warp has its own tiles, stages and softmax; the warps of a block
// meet only at the end of a span. Work item i is the i-th share of all units (decode_config.hpp). The items that share
// a span leave their parts in the scratch (decode_parts.cuh), where one of them adds them up.
#pragma once

#include "kernel/cuda/device/attention/decode_block.cuh"
#include "kernel/cuda/device/attention/decode_parts.cuh"
#include "kernel/cuda/device/attention/decode_whole.cuh"
#include "kernel/cuda/device/overlap.cuh"

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
  static constexpr int threads = Block::threads, stages = C.stages, at_once = 8,
                       most_merged = min_of(64, Block::stage_bytes*stages /
                                                    (8 * C.rows));  ///< parts whose maxima and sums fit a warp's stages

  /// Adds the parts of a span that items up to and with `block` hold, and writes its rows, unless that is for another
  /// item to do. `begin`: the span's first unit; `sums`: memory for the maxima and sums of most_merged parts.
  static CERMET_DEVICE void merge(const attention::Params& p, const Place& span, const AllParts& parts, int units,
                                  int begin, int block, float* sums) {
    const int first = holder_of(units, begin, parts.blocks),
              first_number = share_of(units, first, parts.blocks).begin < begin ? 1 : 0;
    if constexpr (Team::together) parts.wait(first, block - 1);
    else if (!parts.take_if_complete(first, block, first_number)) return;
    const auto part = [&](int i) { return parts.part(i, i == first ? first_number : 0); };
    constexpr int quads = C.value_size / 4,
                  groups = (C.rows * quads + threads - 1) / threads;  // groups of four elements of a thread
    RowPart total[groups];
    for (int from = first; from <= block; from += most_merged) {  // once, but for very many blocks
      const int count = min_of(most_merged, block + 1 - from);
      for (int i = static_cast<int>(Team::rank()); i < count * 2 * C.rows; i += threads)
        sums[i] = __ldcg(part(from + i / (2 * C.rows)) + i % (2 * C.rows));
      Team::sync();
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        const int i = g * threads + static_cast<int>(Team::rank()), r = i / quads, d = i % quads * 4;
        if (r >= span.tile.rows) break;
        float top = total[g].maximum;
        for (int j = 0; j < count; ++j) top = fmaxf(top, sums[j * 2 * C.rows + r]);
        total[g].rescale(top);
        for (int j = 0; j < count; j += at_once) {
          float4 output[at_once];
#pragma unroll
          for (int k = 0; k < at_once; ++k)
            output[k] =
                __ldcg(reinterpret_cast<const float4*>(AllParts::output(part(from + min_of(j + k, count - 1)), r, d)));
#pragma unroll
          for (int k = 0; k < at_once; ++k)
            if (j + k < count)
              total[g].add(sums[(j + k) * 2 * C.rows + r], sums[(j + k) * 2 * C.rows + C.rows + r],
                           {output[k].x, output[k].y, output[k].z, output[k].w}, top);
        }
      }
      Team::sync();
    }
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      const int i = g * threads + static_cast<int>(Team::rank()), r = i / quads, d = i % quads * 4;
      if (r < span.tile.rows) write_row<C>(p, span.tile, span.head, r, d, total[g]);
    }
  }

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
        Block::add_warps(shared, at.tile.rows, state, stage, [&](int, int r, int d, const RowPart& x) {
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
        merge(p, begin, parts, units, share.begin - begin.unit, block, shared.outputs(0, 0));
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
        merge(p, span, parts, units, first_unit, holder_of(units, first_unit + span.tile.units - 1, parts.blocks),
              shared.outputs(0, 0));
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
