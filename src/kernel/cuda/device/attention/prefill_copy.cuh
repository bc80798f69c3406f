// Rows of queries, keys and values on their way to tiles in shared memory, 16 bytes for each thread at a time.
#pragma once

#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/tile_rows.cuh"
#include "kernel/cuda/device/ptx/cp_async.cuh"

namespace cermet::attention {

/// Copies rows of `Size` elements; address(r) is null for rows that become zeros. `any`: a legal address.
template <class Rows, int Size, int Count, int Threads, class Address>
__device__ __forceinline__ void copy_rows(char* to, const void* any, Address&& address) {
  constexpr int chunks = Size / 8;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < Count * chunks; i += Threads) {
    const int r = i / chunks, chunk = i % chunks;
    const auto* from = address(r);
    ptx::cp_async<16>(to + Rows::offset(r, chunk), from ? static_cast<const void*>(from + 8 * chunk) : any, from ? 16 : 0);
  }
}

/// Copies queries of type From as elements of T, or, with Split, as the sum of two, the second part of all rows behind the first.
template <class T, bool Split, class From, class Rows, int Size, int Count, int Threads, class Address>
__device__ __forceinline__ void copy_queries(char* to, const void* any, Address&& address) {
  if constexpr (!Split) {
    copy_rows<Rows, Size, Count, Threads>(to, any, address);
  } else {
    constexpr int chunks = Size / 8, step = min_of(8, per_16_bytes<From>);
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x); i < Count * chunks; i += Threads) {
      const int r = i / chunks, chunk = i % chunks;
      const From* from = address(r);
      Vector<uint32_t, 4> main{}, rest{};
      if (from) {
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; e += step) {
          const auto part = *reinterpret_cast<const Vector<From, step>*>(from + 8 * chunk + e);
#pragma unroll
          for (int j = 0; j < step; ++j) x[e + j] = to_float(part[j]);
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          main[e] = pack(x[2 * e], x[2 * e + 1], T{});
          rest[e] = query_rest<T>(x[2 * e], x[2 * e + 1], main[e]);
        }
      }
      *reinterpret_cast<Vector<uint32_t, 4>*>(to + Rows::offset(r, chunk)) = main;
      *reinterpret_cast<Vector<uint32_t, 4>*>(to + Rows::bytes + Rows::offset(r, chunk)) = rest;
    }
  }
}

/// Copies keys (or values) first .. first + Count of a sequence and head. Those outside `seen` become zeros, because a weight of 0 does not silence a NaN,
/// and those of a page that does not exist, which `broken` tells. `Block`: tokens of a page, 0 where keys are not paged.
template <class T, class Rows, int Size, int Count, int Threads, int Block>
__device__ __forceinline__ void copy_keys(const Params& p, const KeyList& list, const Sequence& s, int head, int first, Visible seen, char* to, bool& broken) {
  const int32_t* table = Block != 0 ? p.block_tables + s.index * p.table_stride : nullptr;
  copy_rows<Rows, Size, Count, Threads>(to, list.data, [&](int r) -> const T* {
    const int key = first + r;
    if (key < seen.first || key >= seen.last) return nullptr;
    int64_t offset = head * list.head_stride;
    if constexpr (Block != 0) {
      const int page = table[key / Block];
      if (page < 0 || page >= p.blocks) {
        broken = true;
        return nullptr;
      }
      offset += page * list.page_stride + key % Block * list.row_stride;
    } else {
      offset += (s.key_begin + key) * list.row_stride;
    }
    return static_cast<const T*>(list.data) + offset;
  });
}

}  // namespace cermet::attention
