// How tiles of keys and values that all warps of a block read get from the pages to shared memory: a unit is one or two
// tiles of 32 keys, each with its keys, values and, where they are quantized, scales.
#pragma once

#include "kernel/cuda/device/attention/decode_scheduler.cuh"
#include "kernel/cuda/device/attention/quantized_tiles.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct SharedTileLoader {
  static constexpr int keys = C.tile_keys, tiles = C.unit_tiles, bytes = cached_bytes<C.kv>,
                       tile_bytes = decode_shared_tile_bytes(C.head_size, C.value_size, bytes, C.values_in_keys);
  using K = CachedRows<C.kv, C.head_size, keys>;
  using V = CachedRows<C.kv, C.value_size, keys>;
  static constexpr SchedulerConfig scheduler{C.kv_heads, C.group, C.rows, keys* tiles, C.block, keys};
  static_assert(keys == 32 && Team::size >= 64);

  /// Page of row `lane` of each tile: the same in all warps.
  struct Pages {
    int page[tiles];
  };
  static CERMET_DEVICE int first_key(const WorkUnit& at, int tile) {
    return at.tile.first_key + (at.unit * tiles + tile) * keys;
  }
  static CERMET_DEVICE const char* values(const char* tile) { return tile + (C.values_in_keys ? 0 : K::bytes); }
  /// Of the keys; those of the values follow.
  static CERMET_DEVICE const float* scales(const char* tile) {
    return reinterpret_cast<const float*>(tile + K::bytes + V::bytes);
  }

  /// Past the end of the context they are anything.
  static CERMET_DEVICE void find_pages(const Params& p, const WorkUnit& at, Pages& pages) {
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      const int index = (first_key(at, i) + static_cast<int>(lane_index())) / C.block;
      pages.page[i] = index < p.pages ? p.block_tables[at.tile.sequence * p.table_stride + index] : -1;
    }
  }

  /// Starts the copies of a unit. Those keys that no row sees become zeros, because a weight of 0 does not silence a
  /// NaN. Returns whether a page that is needed does not exist; its rows become zeros, too.
  static CERMET_DEVICE bool start(const Params& p, const WorkUnit& at, const Pages& pages, char* stage) {
    bool missing = false;
#pragma unroll
    for (int i = 0; i < tiles; ++i) {
      const int first = first_key(at, i), key = first + static_cast<int>(lane_index()), page = pages.page[i];
      const bool seen = key >= at.tile.seen_first && key < at.tile.end_key, exists = page >= 0 && page < p.blocks;
      const uint32_t wanted = __ballot_sync(0xffffffffu, seen && exists);  // bit r: row r is copied
      missing |= seen && !exists;
      char* tile = stage + i * tile_bytes;
      copy_list<K, C.head_size * bytes / 16>(p.k, at.head, first, page, wanted, tile);
      if constexpr (!C.values_in_keys)
        copy_list<V, C.value_size * bytes / 16>(p.v, at.head, first, page, wanted, tile + K::bytes);
      if constexpr (C.token_scales) {
        // One warp has the scales of keys, another those of values.
        float* to = reinterpret_cast<float*>(tile + K::bytes + V::bytes);
        if (Team::warp() == 0) copy_scales(p.k, at.head, first, page, wanted, to);
        if (Team::warp() == 1) copy_scales(p.v, at.head, first, page, wanted, to + keys);
      }
    }
    ptx::cp_async_commit();
    return __any_sync(0xffffffffu, missing);
  }

 private:
  template <class Rows, int Chunks>
  static CERMET_DEVICE void copy_list(const KeyList& list, int head, int first, int page, uint32_t wanted, char* to) {
    const char* base = static_cast<const char*>(list.data) + bytes * head * list.head_stride;
#pragma unroll 4
    for (int i = 0; i < (keys * Chunks + Team::size - 1) / Team::size; ++i) {
      const int place = i * Team::size + static_cast<int>(Team::rank()), r = place / Chunks, chunk = place % Chunks,
                own = __shfl_sync(0xffffffffu, page, r % keys);
      if (keys * Chunks % Team::size != 0 && r >= keys) continue;
      const bool copies = wanted >> r & 1u;
      const char* from = base + bytes * (own * list.page_stride + (first + r) % C.block * list.row_stride) + chunk * 16;
      ptx::cp_async<16>(to + Rows::offset(r, chunk), copies ? from : base, copies ? 16 : 0);
    }
  }

  /// Scales of the rows, 1 where there are none, by a warp.
  static CERMET_DEVICE void copy_scales(const KeyList& list, int head, int first, int page, uint32_t wanted,
                                        float* to) {
    const int r = static_cast<int>(lane_index());
    if (!list.scale) {
      to[r] = 1.0f;
      return;
    }
    const bool copies = wanted >> r & 1u;
    const float* from = list.scale + head * list.scale_head_stride;
    if (copies) from += page * list.scale_page_stride + (first + r) % C.block * list.scale_row_stride;
    ptx::cp_async<4>(to + r, from, copies ? 4 : 0);
  }
};

}  // namespace cermet::attention
