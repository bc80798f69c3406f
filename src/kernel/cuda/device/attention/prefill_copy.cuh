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
  constexpr int chunks = Size / 8, passes = static_cast<int>(div_up(Count * chunks, Threads)), step = Threads / chunks;
  constexpr bool even = Threads % chunks == 0 && Count % step == 0;  // a thread has the same chunk of rows that are `step` apart
  const int32_t* table = Block != 0 ? p.block_tables + s.index * p.table_stride : nullptr;
  const char* base = static_cast<const char*>(list.data) + 2 * (head * list.head_stride + (Block == 0 ? s.key_begin * list.row_stride : 0));
  const int thread = static_cast<int>(threadIdx.x), own_row = thread / chunks, own_chunk = thread % chunks;
  const auto row_of = [&](int i) { return even ? own_row + i * step : (i * Threads + thread) / chunks; };
  const auto chunk_of = [&](int i) { return even ? own_chunk : (i * Threads + thread) % chunks; };
  const char* from[passes];
  bool copies[passes];
#pragma unroll
  for (int i = 0; i < passes; ++i) {
    const int key = first + row_of(i);
    copies[i] = key >= seen.first && key < seen.last;
    if constexpr (Block != 0) {
      const int page = copies[i] ? table[key / Block] : 0;
      const bool exists = page >= 0 && page < p.blocks;
      broken |= !exists;
      copies[i] = copies[i] && exists;
      from[i] = base + 2 * (page * list.page_stride + key % Block * list.row_stride);
    } else {
      from[i] = base + 2 * key * list.row_stride;
    }
  }
#pragma unroll
  for (int i = 0; i < passes; ++i) {
    const int r = row_of(i), chunk = chunk_of(i);
    if (!even && r >= Count) continue;
    ptx::cp_async<16>(to + Rows::offset(r, chunk), copies[i] ? from[i] + 16 * chunk : base, copies[i] ? 16 : 0);
  }
}

}  // namespace cermet::attention
