// Items of attention with bulk tensor copies, and which pages and rows of keys a tile of theirs has. C is a
// configuration with sizes of tiles: TmaPrefillConfig or WidePrefillConfig.
#pragma once

#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/tile_order.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

/// The same number, of which the compiler does not know that no item changes it: what follows from it is computed when
/// it is needed, not kept in registers.
CERMET_DEVICE int not_hoisted(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

/// An item, as the warp that finds it describes it to the others.
struct alignas(64) PrefillNote {
  int tiles;                           ///< of keys; -1: there are no more items
  int sequence, token, rows, kv_head;  ///< first token; rows: of the tile, queries times heads
  int head;                            ///< first one of the tile
  int position, keys;                  ///< of the first token among the keys of its sequence; number of those
  int key_begin;                       ///< of the sequence where keys are not paged
  int first, last;                     ///< key at which the first tile begins; end of the keys that some row sees
  int first_seen;
  int broken;                    ///< whether a page of them does not exist; known when the last values have arrived
  float key_scale, value_scale;  ///< of the head, of 8-bit keys
};

template <auto C>
struct PrefillItems {
  static constexpr int keys = C.keys, box_rows = C.box_rows(), boxes = keys / box_rows;
  static constexpr bool paged = C.block != 0;
  static_assert(boxes <= 32 && box_rows % 8 == 0 && keys % 16 == 0);
  static_assert(sizeof(PrefillNote) <= C.note_bytes);

  // ---- Items: a warp

  /// For one of the blocks of a cluster, which share the keys of a tile.
  static CERMET_DEVICE void write_note(const Params& p, const TilePlace& place, int kv_head, int part, int rank,
                                       PrefillNote& note) {
    const Sequence s = sequence_of(p, place.sequence, C.block);
    const int all_before = place.index * C.cluster_tokens(),
              all_count = min_of(C.cluster_tokens(), s.end - s.begin - all_before);
    const int own = C.cluster_tokens() > C.tokens() ? rank * C.tokens() : 0, before = all_before + own;
    note.sequence = place.sequence;
    note.token = s.begin + before;
    const int first_head =
        (C.cluster_tokens() > C.tokens() ? part : C.cluster * part + rank) * C.heads();  // of the group
    note.rows = max_of(0, min_of(C.tokens(), all_count - own)) * max_of(0, min_of(C.heads(), C.group - first_head));
    note.kv_head = kv_head;
    note.head = kv_head * C.group + first_head;
    note.keys = s.keys;
    note.key_begin = static_cast<int>(s.key_begin);
    note.broken = 0;
    if constexpr (C.columns) {
      const auto scale_of = [&](const KeyList& list) {
        return !C.token_scales && list.scale ? list.scale[kv_head * list.scale_head_stride] : 1.0f;
      };
      note.key_scale = scale_of(p.k), note.value_scale = scale_of(p.v);
    }
    const int position = s.keys - (s.end - s.begin) + all_before;
    note.position = position + own;
    // Both ends of the keys that a row sees rise with the row.
    const int first = visible_keys(p, position, s.keys).first,
              last = visible_keys(p, position + all_count - 1, s.keys).last;
    note.first_seen = first;
    note.last = last;
    note.first = first / keys * keys;
    // One at least, of which no row sees a key then.
    note.tiles = first < last ? (last - first / keys * keys + keys - 1) / keys : 1;
  }

  /// All of the block, `tiles` tiles of tokens being the launch's. full, empty: barriers of the notes
  static CERMET_DEVICE void schedule(const Params& p, int tiles, const BlockItems& items, int rank, PrefillNote* notes,
                                     uint64_t* full, uint64_t* empty) {
    const TileOrder order(p, C.cluster_tokens(), C.block, keys);
    const int same_tokens = p.kv_heads * C.head_tiles();
    ptx::RingSlot<C.notes> slot(0);
#pragma unroll 1
    for (uint32_t round = 0;; ++round) {
      const int item = item_of_round(items, round);
      TilePlace place{-1, 0};
      if (item >= 0) place = order.place(p, item / same_tokens, tiles, C.block);
      if (item >= 0 && place.sequence < 0) continue;
      ptx::mbarrier_wait(empty + slot.stage, slot.phase ^ 1);
      if (lane_index() == 0) {
        const int head = item % same_tokens;
        if (item >= 0) write_note(p, place, head / C.head_tiles(), head % C.head_tiles(), rank, notes[slot.stage]);
        else notes[slot.stage].tiles = -1;
      }
      ptx::mbarrier_arrive_warp(full + slot.stage);
      if (item < 0) return;
      slot.advance();
    }
  }

  // ---- Tiles of keys: a warp, of which each lane has a box

  /// Whether rows of the sequence are in the lane's box of the tile at `first`, and some query sees one.
  static CERMET_DEVICE bool wants(const PrefillNote& note, int first) {
    const int lane = static_cast<int>(lane_index()), key = first + lane * box_rows;
    return lane < boxes && (!paged || (key < note.keys && key + box_rows > note.first_seen));
  }
  /// Page of that box as the table has it. It arrives while the tile before is copied: has() checks it.
  static CERMET_DEVICE int page_of(const Params& p, const PrefillNote& note, int first) {
    if (!paged || !wants(note, first)) return 0;
    const int key = first + static_cast<int>(lane_index()) * box_rows;
    return p.block_tables[note.sequence * p.table_stride + key / (paged ? C.block : 1)];
  }
  /// Whether the lane's box is to be copied. Sets `broken`, where it is given, if queries see it but its page does not
  /// exist: before the warp goes on.
  static CERMET_DEVICE bool has(const Params& p, const PrefillNote& note, int first, int page, int* broken = nullptr) {
    const bool wanted = wants(note, first), exists = !paged || (page >= 0 && page < p.blocks);
    if (broken && wanted && !exists && first + static_cast<int>(lane_index()) * box_rows < note.last) *broken = 1;
    __syncwarp();
    return wanted && exists;
  }

  /// Rows of values that are none of the sequence's, before and after those that are.
  struct Unseen {
    int before, from;
  };
  static CERMET_DEVICE Unseen unseen(const Params& p, const PrefillNote& note, int first) {
    // What lies outside the map has arrived as zeros.
    const bool ends = first + keys > note.keys && (paged || note.key_begin + note.keys < p.key_tokens);
    return {paged ? max_of(0, (note.first_seen - first) / box_rows * box_rows) : 0, ends ? note.keys - first : keys};
  }
};

}  // namespace cermet::attention
#endif
