// Slots of a paged cache and what is stored in them.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.hpp"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::kv_cache {

/// A cache element, quantized where the cache is. A scale of 0 gives 0, whatever x is.
template <Scales S, class To>
CERMET_DEVICE To encode(float x, float scale) {
  if constexpr (S == Scales::none) return from_float<To>(x);
  return from_float<To>(scale == 0.0f ? 0.0f : x / scale);
}

__device__ constexpr float largest_quantized(int8_t) { return 127.0f; }
__device__ constexpr float largest_quantized(f8_e4m3) { return 448.0f; }
__device__ constexpr float largest_quantized(f8_e5m2) { return 57344.0f; }

/// Scale of a vector: given, or computed from the vector's largest magnitude (the same in all lanes of the warp) and
/// filled in.
template <Scales S, class To>
CERMET_DEVICE float scale_of(float* scale_at, float largest) {
  if constexpr (S == Scales::none) {
    return 1.0f;
  } else if constexpr (S == Scales::head) {
    return *scale_at;
  } else {
    const float scale = largest / largest_quantized(To{});
    if (lane_index() == 0) *scale_at = scale;
    return scale;
  }
}

/// A warp stores the vector from[0 .. Size) in its slot, or as one of the tokens of columns.
template <int Size, int Width, Scales S, bool Columns = false, class From, class To>
CERMET_DEVICE void write_vector(const From* from, const SlotPlace<To>& place) {
  constexpr int steps = static_cast<int>(div_up(Size, 32 * Width));
  const int lane = static_cast<int>(lane_index());
  Vector<From, Width> x[steps];
#pragma unroll
  for (int i = 0; i < steps; ++i) {
    const int d = (i * 32 + lane) * Width;
    if (d < Size) x[i] = *reinterpret_cast<const Vector<From, Width>*>(from + d);
  }
  float largest = 0.0f;
  if constexpr (S == Scales::token) {
#pragma unroll
    for (int i = 0; i < steps; ++i)
#pragma unroll
      for (int e = 0; e < Width; ++e)
        if ((i * 32 + lane) * Width < Size) largest = Maximum::combine(fabsf(to_float(x[i][e])), largest);
    largest = warp_reduce<Maximum>(largest);
  }
  const float scale = scale_of<S, To>(place.scale, largest);
#pragma unroll
  for (int i = 0; i < steps; ++i) {
    const int d = (i * 32 + lane) * Width;
    Vector<To, Width> y;
#pragma unroll
    for (int e = 0; e < Width; ++e) y[e] = encode<S, To>(to_float(x[i][e]), scale);
    if (d >= Size) continue;
    if constexpr (Columns) {
#pragma unroll
      for (int e = 0; e < Width; ++e) place.vector[(d + e) * place.step] = y[e];
    } else {
      *reinterpret_cast<Vector<To, Width>*>(place.vector + d) = y;
    }
  }
}

/// Slots of tokens first .. first + count (at most most_item_tokens) for the whole team, -1 where nothing is to be
/// written: the slot is negative or outside the cache, or a later token of the launch overwrites it. `memory`:
/// slot_memory_bytes(count); the slots follow its first element.
template <class Slot, class Team>
CERMET_DEVICE const int64_t* collect_slots(Team team, const void* list, int64_t first, int count, int64_t tokens,
                                           int64_t all_slots, int64_t* memory) {
  const auto slot_of = [&](int64_t t) { return static_cast<int64_t>(static_cast<const Slot*>(list)[t]); };
  auto* overwritten = reinterpret_cast<uint32_t*>(memory);  // bit i: token first + i
  int64_t* slots = memory + 1;
  team.sync();  // an earlier item may still be reading
  if (team.rank() == 0) *overwritten = 0;
  if (static_cast<int>(team.rank()) < count) {
    const int64_t slot = slot_of(first + team.rank());
    slots[team.rank()] = slot < all_slots ? slot : -1;
  }
  team.sync();
  if (first + 1 >= tokens) return slots;
  for (int64_t t = first + 1 + team.rank(); t < tokens; t += Team::size) {
    const int64_t later = slot_of(t);
    const int before = static_cast<int>(min_of(static_cast<int64_t>(count), t - first));
    for (int i = 0; i < before; ++i)
      if (slots[i] == later) atomicOr(overwritten, 1u << i);
  }
  team.sync();
  if (static_cast<int>(team.rank()) < count && (*overwritten >> team.rank() & 1u) != 0) slots[team.rank()] = -1;
  team.sync();
  return slots;
}

}  // namespace cermet::kv_cache
