// kv_cache_write: a warp converts or quantizes one vector of a token and head into its slot. Of tokens with the same
// slot the last is written, whatever the order of warps; slots outside the cache are skipped.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.cuh"
#include "kernel/cuda/device/attention/kv_cache_write.hpp"

namespace cermet::kv_cache {

template <WriteConfig C>
struct WriteTask {
  using Params = WriteParams;
  using From = Element<C.from>;
  using To = Element<C.to>;

  template <int Size, bool Columns>
  static CERMET_DEVICE void write(const Stream& s, int64_t token, int head, int64_t slot, bool aligned) {
    const From* from = static_cast<const From*>(s.from) + token * s.token_stride + head * s.head_stride;
    const SlotPlace<To> place = slot_place<To, Columns>(s.cache, slot, C.block, head);
    constexpr int width = Size % 4 == 0 ? 4 : 1;
    if (width > 1 && aligned) write_vector<Size, width, C.scales, Columns>(from, place);
    else write_vector<Size, 1, C.scales, Columns>(from, place);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    const int64_t first = static_cast<int64_t>(item) * p.item_tokens;
    const int count = static_cast<int>(min_of(static_cast<int64_t>(p.item_tokens), p.tokens - first));
    const int64_t* slots = collect_slots<Element<C.slot>>(team, p.slots, first, count, p.tokens, p.blocks * C.block,
                                                          reinterpret_cast<int64_t*>(smem));
    const int units = count * p.heads * 2;
    for (int unit = static_cast<int>(team.warp()); unit < units; unit += C.threads / 32) {
      const int i = unit / 2 / p.heads, head = unit / 2 % p.heads;
      if (slots[i] < 0) continue;
      if (unit % 2 == 0) write<C.key_size, false>(p.k, first + i, head, slots[i], p.aligned);
      else write<C.value_size, C.columns>(p.v, first + i, head, slots[i], p.aligned);
    }
  }
};

}  // namespace cermet::kv_cache
