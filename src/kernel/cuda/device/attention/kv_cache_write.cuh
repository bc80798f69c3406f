// kv_cache_write: a warp converts or quantizes one vector of a token and head into its slot. Tokens that a later one overwrites are left out, so that
// the result does not depend on the order of warps; slots outside the cache are skipped.
#pragma once

#include "kernel/cuda/device/attention/kv_cache_write.hpp"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::kv_cache {

enum class Scales { none, head, token };

struct Config {
  int key_size, value_size, block;  ///< block: tokens of a page
  DType from, to, slot;
  Scales scales;
  int threads;
};

template <Config C>
struct Task {
  using Params = kv_cache::Params;
  using From = Element<C.from>;
  using To = Element<C.to>;
  using Slot = Element<C.slot>;
  static constexpr float largest = C.to == DType::f8_e4m3 ? 448.0f : C.to == DType::f8_e5m2 ? 57344.0f : 127.0f;

  /// A code, or the element itself where there are no scales. A scale of 0 gives codes 0, whatever x is.
  static __device__ __forceinline__ To encode(float x, float scale) {
    if constexpr (C.scales == Scales::none) return from_float<To>(x);
    return from_float<To>(scale == 0.0f ? 0.0f : x / scale);
  }

  template <int Size, int Width>
  static __device__ __forceinline__ void write_vector(const From* from, To* to, float* scale_at) {
    constexpr int steps = static_cast<int>(div_up(Size, 32 * Width));
    const int lane = static_cast<int>(threadIdx.x % 32);
    Vector<From, Width> x[steps];
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const int d = (i * 32 + lane) * Width;
      if (d < Size) x[i] = *reinterpret_cast<const Vector<From, Width>*>(from + d);
    }
    float scale = 1.0f;
    if constexpr (C.scales == Scales::head) scale = *scale_at;
    if constexpr (C.scales == Scales::token) {
      float top = 0.0f;
#pragma unroll
      for (int i = 0; i < steps; ++i)
#pragma unroll
        for (int e = 0; e < Width; ++e)
          if ((i * 32 + lane) * Width < Size) top = Maximum::combine(fabsf(to_float(x[i][e])), top);
      scale = warp_reduce<Maximum>(top) / largest;
      if (lane == 0) *scale_at = scale;
    }
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const int d = (i * 32 + lane) * Width;
      Vector<To, Width> y;
#pragma unroll
      for (int e = 0; e < Width; ++e) y[e] = encode(to_float(x[i][e]), scale);
      if (d < Size) *reinterpret_cast<Vector<To, Width>*>(to + d) = y;
    }
  }

  template <int Size>
  static __device__ __forceinline__ void write(const Stream& s, int64_t token, int head, int64_t slot, bool aligned) {
    const int64_t page = slot / C.block, row = slot % C.block;
    const From* from = static_cast<const From*>(s.from) + token * s.token_stride + head * s.head_stride;
    To* to = static_cast<To*>(s.cache) + page * s.page_stride + row * s.row_stride + head * s.cache_head_stride;
    float* scale = s.scale + page * s.scale_page_stride + row * s.scale_row_stride + head * s.scale_head_stride;
    constexpr int width = Size % 4 == 0 ? 4 : 1;
    if (width > 1 && aligned) write_vector<Size, width>(from, to, scale);
    else write_vector<Size, 1>(from, to, scale);
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    auto* slots = reinterpret_cast<int64_t*>(smem);  // [item_tokens], -1 where nothing is to be written
    const int64_t first = static_cast<int64_t>(item) * p.item_tokens, all_slots = p.blocks * C.block;
    const int count = static_cast<int>(min_of(static_cast<int64_t>(p.item_tokens), p.tokens - first));
    const auto slot_of = [&](int64_t t) { return static_cast<int64_t>(static_cast<const Slot*>(p.slots)[t]); };
    __syncthreads();  // an earlier item may still be reading
    if (threadIdx.x < count) {
      const int64_t slot = slot_of(first + threadIdx.x);
      slots[threadIdx.x] = slot < all_slots ? slot : -1;
    }
    __syncthreads();
    for (int64_t t = first + 1 + threadIdx.x; t < p.tokens; t += C.threads) {
      const int64_t later = slot_of(t);
      const int before = static_cast<int>(min_of(static_cast<int64_t>(count), t - first));
      for (int i = 0; i < before; ++i)
        if (slots[i] == later) slots[i] = -1;
    }
    __syncthreads();
    const int units = count * p.heads * 2, warps = C.threads / 32;
    for (int unit = static_cast<int>(threadIdx.x / 32); unit < units; unit += warps) {
      const int i = unit / 2 / p.heads, head = unit / 2 % p.heads;
      const int64_t slot = slots[i];
      if (slot < 0) continue;
      if (unit % 2 == 0) write<C.key_size>(p.k, first + i, head, slot, p.aligned);
      else write<C.value_size>(p.v, first + i, head, slot, p.aligned);
    }
  }
};

}  // namespace cermet::kv_cache
