// Which units of work a thread block of the decoding task has, computed from the lengths that are in device memory. See
// decode_config.hpp.
#pragma once

#include "kernel/cuda/device/attention/decode_config.hpp"
#include "kernel/cuda/device/attention/queries.cuh"

namespace cermet::attention {

/// What the plan depends on: key-value heads, heads that share a key-value head, rows of a tile, keys of a unit, tokens
/// of a page; units start at multiples of `align`.
struct PlanConfig {
  int kv_heads, group, rows, unit_keys, block, align;
};

/// A row tile of a sequence; all key-value heads see the same.
struct RowTile {
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
CERMET_DEVICE int holder_of(int units, int unit, int blocks) {
  const int each = units / blocks, longer = units % blocks;
  return unit < longer * (each + 1) ? unit / (each + 1) : longer + (unit - longer * (each + 1)) / each;
}

/// A place in the sequence of all units.
struct Place {
  RowTile tile;
  int tile_index, head, unit;
  int rank = 0;  ///< of the block among those to which a span's tiles of keys are dealt out
  CERMET_DEVICE bool ends_span() const { return unit + 1 == tile.units; }
};

template <PlanConfig C>
struct Plan {
  static CERMET_DEVICE int tiles_of(const Params& p, int b) {
    return (query_count(p, b, true) * C.group + C.rows - 1) / C.rows;
  }

  static CERMET_DEVICE RowTile row_tile(const Params& p, int b, int tile) {
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

  /// Share of a block, the place where it begins (if it is not empty), and the number of all units. Called by whole
  /// warps. `blocks`: all, then those that have work; `least`: of DecodeParams.
  static CERMET_DEVICE Share begin(const Params& p, int block, int least, int& blocks, Place& place, int& units) {
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
    place.tile_index = 0;
    place.tile = row_tile(p, b, 0);
    while (at >= place.tile.units * C.kv_heads) {
      at -= place.tile.units * C.kv_heads;
      place.tile = row_tile(p, b, ++place.tile_index);
    }
    place.head = at / place.tile.units;
    place.unit = at % place.tile.units;
    return share;
  }

  /// Moves to the first unit of the next span, which must exist.
  static CERMET_DEVICE void next_span(const Params& p, Place& place) {
    place.unit = 0;
    if (++place.head < C.kv_heads) return;
    place.head = 0;
    int b = place.tile.sequence;
    if (++place.tile_index >= tiles_of(p, b)) {
      place.tile_index = 0;
      do ++b;
      while (tiles_of(p, b) == 0);
    }
    place.tile = row_tile(p, b, place.tile_index);
  }
};

}  // namespace cermet::attention
