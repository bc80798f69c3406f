// Tiles of values in columns of 16 tokens, which lie in shared memory as they do in a page: [keys / 16, Dv, 16] bytes.
#pragma once

#include "kernel/cuda/device/attention/prefill_tma_scores.cuh"
#include "kernel/cuda/device/ptx/bulk.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::attention {

template <TmaPrefillConfig C>
struct PrefillColumns {
  static constexpr int column = format::value_column, column_bytes = column * C.value_size;
  static constexpr int box_rows = C.box_rows(), box_bytes = box_rows * C.value_size;

  /// A warp, of which each lane that has a box of the tile at `first` copies it from its page.
  static CERMET_DEVICE void copy(const Params& p, const PrefillNote& note, int first, int page, bool has, char* to,
                                 uint64_t* full) {
    const int lane = static_cast<int>(lane_index()), row = (first + lane * box_rows) % C.block;
    const uint32_t copied = __ballot_sync(0xffffffffu, has);
    if (lane == 0) ptx::mbarrier_arrive_expect(full, static_cast<uint32_t>(__popc(copied) * box_bytes));
    __syncwarp();
    if (!has) return;
    const char* const from = static_cast<const char*>(p.v.data) + page * p.v.page_stride +
                             note.kv_head * p.v.head_stride + row / column * p.v.row_stride;
    ptx::bulk_load(to + lane * box_bytes, from, box_bytes, full);
  }

  /// Scales of a tile's tokens, of which each lane has every 32nd, as consumers read them.
  struct Scales {
    static constexpr int each = (C.keys + 31) / 32;
    float k[each], v[each];

    /// Of the tile at `first`; page: that of each lane's box, or -1.
    CERMET_DEVICE void load(const Params& p, const PrefillNote& note, int first, int page) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int at = 32 * i + static_cast<int>(lane_index()), key = first + at;
        const int own_page = __shfl_sync(0xffffffffu, page, at / box_rows % 32);
        k[i] = v[i] = 0.0f;
        if (own_page < 0 || at >= C.keys || key >= note.keys) continue;
        const auto scale = [&](const KeyList& list) {
          return list.scale[own_page * list.scale_page_stride + key % C.block * list.scale_row_stride +
                            note.kv_head * list.scale_head_stride];
        };
        k[i] = scale(p.k), v[i] = scale(p.v);
      }
    }

    /// Values' scales are relative to a power of two, at least twice as large as any of the item so far, so that
    /// weights stay in their format; what is not finite makes results that are computed again.
    CERMET_DEVICE void store(float* to, float factor, float& relative_to) const {
      uint32_t top = 0;
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const uint32_t bits = __float_as_uint(v[i]) & 0x7f800000u;
        if (bits < 0x7e800000u) top = max_of(top, bits);
      }
      const float largest = 2.0f * __uint_as_float(__reduce_max_sync(0xffffffffu, top));
      if (largest > relative_to) relative_to = largest;
      const float one = relative_to > 0.0f ? relative_to : 1.0f, inverse = 1.0f / one;
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int at = 32 * i + static_cast<int>(lane_index());
        if (at >= C.keys) continue;
        const float scale = v[i] * inverse;
        to[at] = k[i] * factor;
        to[C.keys + at] = fabsf(scale) <= 1.0f ? scale : quiet_nan();
      }
      if (lane_index() == 0) to[2 * C.keys] = one;
      __syncwarp();
    }
  };

  /// Bytes of the first `count` tokens in word `word` of 16, whose places are those of value_place().
  static CERMET_DEVICE uint32_t mask_of(int word, int count) {
    uint32_t mask = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (2 * word + i / 2 * 8 + i % 2 < count) mask |= 0xffu << 8 * i;
    return mask;
  }

  /// A warp makes values zero of the tile's tokens before `before`, which is a multiple of 16, and from `from` on.
  static CERMET_DEVICE void clear(char* tile, int before, int from) {
#pragma unroll 1
    for (int group = 0; group < C.keys / column; ++group) {
      const int count = group * column < before ? 0 : min_of(max_of(from - group * column, 0), column);
      if (count == column) continue;
      const uint4 mask{mask_of(0, count), mask_of(1, count), mask_of(2, count), mask_of(3, count)};
      auto* const at = reinterpret_cast<uint4*>(tile + group * column_bytes);
      for (int d = static_cast<int>(lane_index()); d < C.value_size; d += 32) {
        const uint4 x = count > 0 ? at[d] : uint4{0, 0, 0, 0};
        at[d] = {x.x & mask.x, x.y & mask.y, x.z & mask.z, x.w & mask.w};
      }
    }
  }
};

}  // namespace cermet::attention
#endif
