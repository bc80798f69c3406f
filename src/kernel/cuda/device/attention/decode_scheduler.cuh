// The schedulers of decoding attention: which units of work a thread block has, computed from the lengths that are in
// device memory. Equal shares of all units, or, where that suits the lengths, a whole span for each block.
#pragma once

#include "kernel/cuda/device/attention/decode_config.hpp"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

/// What a schedule depends on: key-value heads, heads that share a key-value head, rows of a tile, keys of a unit,
/// tokens of a page; units start at multiples of `align`.
struct SchedulerConfig {
  int kv_heads, group, rows, unit_keys, block, align;
};

/// A query tile of a sequence; all key-value heads see the same keys.
struct QueryTile {
  int sequence, first_row, rows;  ///< rows: used ones
  int query_begin, position;      ///< first token of the sequence; position of its row 0
  int first_key;                  ///< of unit 0
  int seen_first, end_key;        ///< some row sees the keys seen_first .. end_key
  int all_first, all_end;         ///< all rows see the keys all_first .. all_end
  int units;
};

/// Units [begin, end) of a thread block; the blocks' shares differ by at most one.
struct Share {
  int begin, end;
};
CERMET_DEVICE Share share_of(int units, int block, int blocks) {
  const int each = units / blocks, longer = units % blocks, begin = block * each + min_of(block, longer);
  return {begin, begin + each + (block < longer ? 1 : 0)};
}
/// How many of `blocks` have work, so that each has `least` units or a whole span: as many for each of `heads`
/// key-value heads.
CERMET_DEVICE int sharing_blocks(int units, int heads, int least, int blocks) {
  if (least == 0 || blocks < heads) return blocks;
  return heads * max_of(1, min_of(units / (least * heads), blocks / heads));
}
/// The block whose share holds a unit.
CERMET_DEVICE int block_of_unit(int units, int unit, int blocks) {
  const int each = units / blocks, longer = units % blocks;
  return unit < longer * (each + 1) ? unit / (each + 1) : longer + (unit - longer * (each + 1)) / each;
}

/// A unit of work in the order of all: unit `unit` of the span of a query tile and a key-value head.
struct WorkUnit {
  QueryTile tile;
  int tile_index, head, unit;
  int rank = 0;  ///< of the block among those to which a span's tiles of keys are dealt out
  CERMET_DEVICE bool ends_span() const { return unit + 1 == tile.units; }
};

template <SchedulerConfig C>
struct DecodeScheduler {
  static CERMET_DEVICE int tiles_of(const Params& p, int b) {
    return (query_count(p, b, true) * C.group + C.rows - 1) / C.rows;
  }

  static CERMET_DEVICE QueryTile row_tile(const Params& p, int b, int tile) {
    const Sequence s = sequence_of(p, b, C.block);
    const int queries = s.end - s.begin, first_row = tile * C.rows,
              rows = min_of(C.rows, queries * C.group - first_row), position = s.keys - queries;
    const Visible low = visible_keys(p, position + first_row / C.group, s.keys),
                  high = visible_keys(p, position + (first_row + rows - 1) / C.group, s.keys);
    const int first_key = low.first / C.align * C.align, end_key = max_of(high.last, first_key);
    return {b,
            first_row,
            rows,
            s.begin,
            position,
            first_key,
            low.first,
            end_key,
            high.first,
            low.last,
            max_of(1, (end_key - first_key + C.unit_keys - 1) / C.unit_keys)};
  }

  /// Units of sequence b.
  static CERMET_DEVICE int units_of(const Params& p, int b) {
    int units = 0;
    for (int tile = 0; tile < tiles_of(p, b); ++tile) units += row_tile(p, b, tile).units;
    return units * C.kv_heads;
  }

  /// Units of sequences up to and with that of each lane, in sequences first .. first + 32.
  static CERMET_DEVICE int units_up_to(const Params& p, int first) {
    const int lane = static_cast<int>(lane_index());
    int units = first + lane < p.sequences ? units_of(p, first + lane) : 0;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const int below = __shfl_up_sync(0xffffffffu, units, offset);
      if (lane >= offset) units += below;
    }
    return units;
  }

  static CERMET_DEVICE int last_lane(int x) { return __shfl_sync(0xffffffffu, x, 31); }

  /// Share of a block, the unit where it begins (if it is not empty), and the number of all units. Called by whole
  /// warps. `blocks`: all, then those that have work; `least`: of DecodeParams.
  static CERMET_DEVICE Share begin(const Params& p, int block, int least, int& blocks, WorkUnit& work, int& units) {
    int all = units_up_to(p, 0);
    units = last_lane(all);
    for (int first = 32; first < p.sequences; first += 32) units += last_lane(units_up_to(p, first));
    blocks = sharing_blocks(units, C.kv_heads, least, blocks);
    if (block >= blocks) return {0, 0};
    const Share share = share_of(units, block, blocks);
    if (share.begin == share.end) return share;
    int at = share.begin, b = 0;
    for (int first = 0;; first += 32) {
      if (first > 0) all = units_up_to(p, first);
      const uint32_t holds = __ballot_sync(0xffffffffu, at < all);
      if (holds != 0) {
        const int owner = __ffs(static_cast<int>(holds)) - 1;
        if (owner > 0) at -= __shfl_sync(0xffffffffu, all, owner - 1);
        b = first + owner;
        break;
      }
      at -= last_lane(all);
    }
    work.tile_index = 0;
    work.tile = row_tile(p, b, 0);
    while (at >= work.tile.units * C.kv_heads) {
      at -= work.tile.units * C.kv_heads;
      work.tile = row_tile(p, b, ++work.tile_index);
    }
    work.head = at / work.tile.units;
    work.unit = at % work.tile.units;
    return share;
  }

  /// Moves to the first unit of the next span, which must exist.
  static CERMET_DEVICE void next_span(const Params& p, WorkUnit& work) {
    work.unit = 0;
    if (++work.head < C.kv_heads) return;
    work.head = 0;
    int b = work.tile.sequence;
    if (++work.tile_index >= tiles_of(p, b)) {
      work.tile_index = 0;
      do ++b;
      while (tiles_of(p, b) == 0);
    }
    work.tile = row_tile(p, b, work.tile_index);
  }
};

/// For many sequences of about the same length: there are no more spans than thread blocks, and each block takes a
/// whole one, so that nothing is combined between blocks. Only the lengths, which are in device memory, say whether
/// that suits them. A block loads keys of the span that it would have before it has looked at all of them.
template <SchedulerConfig C>
struct WholeSpanScheduler {
  using Scheduler = DecodeScheduler<C>;

  /// Brings what is read of the lengths, and the span's first pages, to the L1, all at once: one after the other each
  /// would take a way to the memory.
  static CERMET_DEVICE void prefetch_tables(const Params& p, int sequence) {
    constexpr int line = 32;  // words
    const int lane = static_cast<int>(lane_index()), lines = min_of(p.sequences / line + 2, 32);
    if (lane < lines) {
      if (p.query_starts) ptx::touch(static_cast<const int32_t*>(p.query_starts) + min_of(lane * line, p.sequences));
      ptx::touch(p.context_lens + min_of(lane * line, p.sequences - 1));
    }
    if (lane < p.pages) ptx::touch(p.block_tables + min_of(sequence, p.sequences - 1) * p.table_stride + lane);
  }

  /// Whether no span is much longer than a share of all units would be. The same for all blocks. Called by whole warps.
  static CERMET_DEVICE bool fits(const Params& p, int blocks) {
    int units = 0, longest = 0;
    bool several = false;
#pragma unroll 1
    for (int b = static_cast<int>(lane_index()); b < p.sequences; b += 32) {
      const int tiles = Scheduler::tiles_of(p, b), own = tiles == 1 ? Scheduler::row_tile(p, b, 0).units : 0;
      several |= tiles > 1;
      units += own;
      longest = max_of(longest, own);
    }
    if (__any_sync(0xffffffffu, several)) return false;
    units = static_cast<int>(__reduce_add_sync(0xffffffffu, static_cast<uint32_t>(units)));
    longest = static_cast<int>(__reduce_max_sync(0xffffffffu, static_cast<uint32_t>(longest)));
    return whole_spans_suit(longest, units * C.kv_heads, blocks);
  }

  /// Whether blocks may have whole spans, as far as a block knows without looking at the other lengths, and then its
  /// own, of no units where there is none.
  static CERMET_DEVICE bool begin(const Params& p, int block, int blocks, WorkUnit& work) {
    const int spans = p.sequences * C.kv_heads, sequence = block / C.kv_heads;
    if (spans == 0 || spans > blocks) return false;
    prefetch_tables(p, sequence);
    work.tile.units = 0;
    const int tiles = sequence < p.sequences ? Scheduler::tiles_of(p, sequence) : 0;
    if (tiles == 0) return true;
    work.tile = Scheduler::row_tile(p, sequence, 0);
    work.tile_index = work.unit = 0;
    work.head = block % C.kv_heads;
    // All spans as long as this one make the longest shares; a longer one is no closer to its share.
    return tiles == 1 && whole_spans_suit(work.tile.units, work.tile.units * spans, blocks);
  }
};

}  // namespace cermet::attention
