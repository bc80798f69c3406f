// Experts of the pairs of token and expert, as the tasks that sort them read them.
#pragma once

#include "kernel/cuda/device/mixture/permute.hpp"
#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::permute {

/// Group of an int32 or int64 id. Numbers of experts are far below what the difference of a smaller one wraps around
/// to.
CERMET_DEVICE int32_t group_of(const Params& p, int32_t id) {
  const uint32_t group = static_cast<uint32_t>(id) - static_cast<uint32_t>(p.first);
  return group < static_cast<uint32_t>(p.own) ? static_cast<int32_t>(group) : p.others;
}
CERMET_DEVICE int32_t group_of(const Params& p, int64_t id) {
  const uint64_t group = static_cast<uint64_t>(id) - static_cast<uint64_t>(p.first);
  return group < static_cast<uint64_t>(p.own) ? static_cast<int32_t>(group) : p.others;
}

/// Token of a pair. Fewer than 2^31 pairs: row_of is int32.
CERMET_DEVICE int64_t token_of(const Params& p, int64_t pair) { return quotient(static_cast<uint32_t>(pair), p.by_k); }
/// Where a pair is in rows that are so far apart.
CERMET_DEVICE int64_t offset_of(const Params& p, int64_t pair, int64_t stride) {
  return pair + token_of(p, pair) * (stride - p.k);
}

/// Calls body(zero of the type of ids). Inside, loads of many ids wait for none of each other, as they would if each
/// looked at its type.
template <class Body>
CERMET_DEVICE void by_id_type(const Params& p, Body&& body) {
  if (p.wide_ids != 0) body(int64_t{});
  else body(int32_t{});
}

/// Calls body(pair, group) for every threads-th pair from `first` to `end`; of ids_at_once of them the ids are loaded
/// before any is looked at.
template <class Id, class Body>
CERMET_DEVICE void for_pairs(const Params& p, int32_t first, int32_t end, Body&& body) {
  const Id* ids = static_cast<const Id*>(p.ids);
#pragma unroll 1
  for (int32_t pair = first; pair < end; pair += threads * ids_at_once) {
    Id id[ids_at_once];
#pragma unroll
    for (int i = 0; i < ids_at_once; ++i)
      if (pair + i * threads < end) id[i] = ids[offset_of(p, pair + i * threads, p.ids_stride)];
#pragma unroll
    for (int i = 0; i < ids_at_once; ++i)
      if (pair + i * threads < end) body(pair + i * threads, group_of(p, id[i]));
  }
}

/// Sum of the lanes' values and those of the lanes below.
CERMET_DEVICE int32_t inclusive_sum(int32_t value) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int32_t below = __shfl_up_sync(0xffffffffu, value, offset);
    if (static_cast<int>(lane_index()) >= offset) value += below;
  }
  return value;
}

/// Sum of all lanes' values, for each of them.
CERMET_DEVICE int32_t warp_sum(int32_t value) {
#if CERMET_ARCH >= 800
  return __reduce_add_sync(0xffffffffu, value);
#else
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
#endif
}

}  // namespace cermet::permute
