// The other plan of a decoding task, for many sequences of about the same length: there are no more spans than thread
// blocks, and each block takes a whole one, so that nothing is added up between blocks. Only the lengths, which are in
// device memory, say whether that suits them. A block asks for the keys of the span that it would have before it has
// looked at all of them.
#pragma once

#include "kernel/cuda/device/attention/decode_plan.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

template <PlanConfig C>
struct WholeSpans {
  using Planner = Plan<C>;

  /// Brings what is read of the lengths, and the span's first pages, to the L1, all at once: one after the other each
  /// would take a way to the memory.
  static CERMET_DEVICE void warm(const Params& p, int sequence) {
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
      const int tiles = Planner::tiles_of(p, b), own = tiles == 1 ? Planner::row_tile(p, b, 0).units : 0;
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
  static CERMET_DEVICE bool begin(const Params& p, int block, int blocks, Place& place) {
    const int spans = p.sequences * C.kv_heads, sequence = block / C.kv_heads;
    if (spans == 0 || spans > blocks) return false;
    warm(p, sequence);
    place.tile.units = 0;
    const int tiles = sequence < p.sequences ? Planner::tiles_of(p, sequence) : 0;
    if (tiles == 0) return true;
    place.tile = Planner::row_tile(p, sequence, 0);
    place.tile_index = place.unit = 0;
    place.head = block % C.kv_heads;
    // All spans as long as this one make the longest shares; a longer one is no closer to its share.
    return tiles == 1 && whole_spans_suit(place.tile.units, place.tile.units * spans, blocks);
  }
};

}  // namespace cermet::attention
