// How a warp's tiles of keys and values get from the pages to shared memory.
#pragma once

#include "kernel/cuda/device/attention/decode_scheduler.cuh"
#include "kernel/cuda/device/attention/quantized_tiles.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"

namespace cermet::attention {

template <DecodeConfig C, class Team>
struct KvLoader {
  static constexpr int keys = C.tile_keys, bytes = cached_bytes<C.kv>;
  using K = CachedRows<C.kv, C.head_size, keys>;
  using V = CachedRows<C.kv, C.value_size, keys>;
  static constexpr SchedulerConfig scheduler{C.kv_heads, C.group, C.rows, C.warps* keys* C.ranks, C.block, keys};
  static constexpr bool one_page = C.block % keys == 0;  ///< a tile lies in one page

  static_assert(Team::size == 32 * C.warps && (Team::cluster == C.ranks || Team::cluster == 1));

  static CERMET_DEVICE int lane() { return static_cast<int>(lane_index()); }
  /// First key of this warp's tile.
  static CERMET_DEVICE int first_key(const WorkUnit& at) {
    return at.tile.first_key +
           ((at.unit * C.warps + static_cast<int>(Team::warp())) * C.ranks + (C.ranks == 1 ? 0 : at.rank)) * keys;
  }
  /// Row of a tile that this lane looks after.
  static CERMET_DEVICE int own_row() { return lane() % keys; }

  /// Page of this lane's row; past the end of the context it is anything.
  static CERMET_DEVICE int find_page(const Params& p, const WorkUnit& at) {
    const int page = (one_page ? first_key(at) : first_key(at) + own_row()) / C.block;
    return page < p.pages ? p.block_tables[at.tile.sequence * p.table_stride + page] : -1;
  }

  /// Starts the copies of a tile: keys, then values. Those that no row sees become zeros, because a weight of 0 does
  /// not silence a NaN. Returns whether a page that is needed does not exist; its rows become zeros, too.
  static CERMET_DEVICE bool start(const Params& p, const WorkUnit& at, int page, char* stage) {
    const int first = first_key(at), key = first + own_row();
    const bool seen = key >= at.tile.seen_first && key < at.tile.end_key, exists = page >= 0 && page < p.blocks;
    const uint32_t wanted = __ballot_sync(0xffffffffu, seen && exists);  // bit r: row r is copied
    copy_list<K, C.head_size * bytes / 16>(p.k, at.head, first, page, stage, wanted);
    copy_list<V, C.value_size * bytes / 16>(p.v, at.head, first, page, stage + K::bytes, wanted);
    if constexpr (C.token_scales) {
      float* scales = reinterpret_cast<float*>(stage + K::bytes + V::bytes);
      copy_scales(p.k, at.head, first, page, scales, wanted);
      copy_scales(p.v, at.head, first, page, scales + keys, wanted);
    }
    ptx::cp_async_commit();
    return __any_sync(0xffffffffu, seen && !exists);
  }

  template <class Rows, int Chunks>
  static CERMET_DEVICE void copy_list(const KeyList& list, int head, int first, int page, char* to, uint32_t wanted) {
    const char* base = static_cast<const char*>(list.data) + bytes * head * list.head_stride;
    constexpr bool rows_take_lanes =
        32 % Chunks == 0 && 32 / Chunks <= keys;  // of elements of 8, lanes would copy more rows than a short tile has
    if (one_page && rows_take_lanes && wanted == 0xffffffffu) {
      const int row = lane() / Chunks, chunk = lane() % Chunks;
      const char* from =
          base + bytes * (page * list.page_stride + (first % C.block + row) * list.row_stride) + chunk * 16;
#pragma unroll
      for (int r = 0; r<keys; r += 32 / Chunks> 0 ? 32 / Chunks : 1) {
        ptx::cp_async<16>(to + Rows::offset(r + row, chunk), from);
        from += bytes * (32 / Chunks) * list.row_stride;
      }
      return;
    }
    if constexpr (C.whole && one_page && rows_take_lanes) {  // some rows: in the same order, and zeros for the others
      const int row = lane() / Chunks, chunk = lane() % Chunks;
      const char* from =
          base + bytes * ((wanted != 0 ? page : 0) * list.page_stride + (first % C.block + row) * list.row_stride) +
          chunk * 16;
#pragma unroll
      for (int r = 0; r < keys; r += 32 / Chunks) {
        ptx::cp_async<16>(to + Rows::offset(r + row, chunk), from, (wanted >> (r + row) & 1u) != 0 ? 16 : 0);
        from += bytes * (32 / Chunks) * list.row_stride;
      }
      return;
    }
    constexpr int step = 32 % Chunks == 0 ? 32 / Chunks : 0;  // rows that the lanes copy at a time
    constexpr bool whole_pages = !one_page && keys % C.block == 0 && step > 0 && C.block % (step > 0 ? step : 1) == 0;
    if (whole_pages && wanted == 0xffffffffu) {
      const int row = lane() / Chunks, chunk = lane() % Chunks;
#pragma unroll
      for (int first_row = 0; first_row < keys; first_row += C.block) {
        const char* from =
            base + bytes * (__shfl_sync(0xffffffffu, page, first_row) * list.page_stride + row * list.row_stride) +
            chunk * 16;
#pragma unroll
        for (int r = 0; r<C.block; r += step> 0 ? step : 1) {
          ptx::cp_async<16>(to + Rows::offset(first_row + r + row, chunk), from);
          from += bytes * step * list.row_stride;
        }
      }
      return;
    }
#pragma unroll 4
    for (int i = 0; i < (keys * Chunks + 31) / 32; ++i) {
      const int r = (i * 32 + lane()) / Chunks, chunk = (i * 32 + lane()) % Chunks;
      const int own = one_page ? page : __shfl_sync(0xffffffffu, page, r % keys);
      if (keys * Chunks % 32 != 0 && r >= keys) continue;
      const bool copies = wanted >> r & 1u;
      const char* from = base + bytes * (own * list.page_stride + (first + r) % C.block * list.row_stride) + chunk * 16;
      ptx::cp_async<16>(to + Rows::offset(r, chunk), copies ? from : base, copies ? 16 : 0);
    }
  }

  /// Scales of the rows, 1 where there are none.
  static CERMET_DEVICE void copy_scales(const KeyList& list, int head, int first, int page, float* to,
                                        uint32_t wanted) {
    const int row = own_row();
    if (lane() >= keys) return;
    if (!list.scale) {
      to[row] = 1.0f;
      return;
    }
    const bool copies = wanted >> row & 1u;
    const float* from = list.scale + head * list.scale_head_stride;
    if (copies) from += page * list.scale_page_stride + (first + row) % C.block * list.scale_row_stride;
    ptx::cp_async<4>(to + row, from, copies ? 4 : 0);
  }
};

}  // namespace cermet::attention
