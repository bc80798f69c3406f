// argmax: the place of a row's largest or smallest element; NaN wins, of equal elements the first or the last. A cluster shares a long row.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/order.cuh"
#include "kernel/cuda/device/sampling/argmax.hpp"
#include "kernel/cuda/device/sampling/group.cuh"

namespace cermet::argmax {

struct Config {
  DType x;
  bool smallest, last;
  int threads, cluster;
};

/// The best key so far and a code of its place, larger for the place that wins among equals; 0 before the first element.
template <Config C>
struct Best {
  using T = Element<C.x>;
  using Key = typename OrderOf<T>::Key;
  Key key = 0;
  uint32_t place = 0;

  static __device__ __forceinline__ uint32_t code(uint32_t index) { return C.last ? index + 1 : 0xffffffffu - index; }
  static __device__ __forceinline__ uint32_t index(uint32_t code) { return C.last ? code - 1 : 0xffffffffu - code; }

  __device__ __forceinline__ void take(T x, uint32_t i) {
    Key k = OrderOf<T>::key(x);
    if constexpr (C.smallest) {
      if (is_integral<T> || k != static_cast<Key>(~Key{0})) k = static_cast<Key>(~k);  // NaN wins over the smallest, too
    }
    if (place == 0 || k > key || (C.last && k == key)) key = k, place = code(i);
  }
  /// The code of the winner among the threads of a group.
  template <class Group>
  __device__ __forceinline__ uint32_t winner(Group& group) const {
    if constexpr (sizeof(Key) == 4) return static_cast<uint32_t>(group.template reduce<MaxU64>(static_cast<uint64_t>(key) << 32 | place));
    const uint64_t largest = group.template reduce<MaxU64>(place > 0 ? key : 0);
    return static_cast<uint32_t>(group.template reduce<MaxU64>(key == largest ? place : 0));
  }
};

/// One work item: a block's share of a row.
template <Config C>
struct Task {
  using Params = argmax::Params;
  using T = Element<C.x>;
  static constexpr int width = per_16_bytes<T>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    static_assert(Team::size == C.threads && Team::cluster == C.cluster);
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    const uint32_t row = item / C.cluster, rank = item % C.cluster, thread = team.rank();
    int64_t offset[2];
    offsets_at(p.rows, row, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];  // [length]
    const auto length = static_cast<uint32_t>(p.length);
    Best<C> best;
    if (p.vectors) {
      const uint32_t steps = length / width, stride = C.threads * C.cluster;
#pragma unroll 8
      for (uint32_t s = rank * C.threads + thread; s < steps; s += stride) {
        const auto v = reinterpret_cast<const Vector<T, width>*>(x)[s];
#pragma unroll
        for (int j = 0; j < width; ++j) best.take(v[j], s * width + j);
      }
      for (uint32_t i = steps * width + rank * C.threads + thread; i < length; i += stride) best.take(x[i], i);
    } else {
#pragma unroll 4
      for (uint32_t i = rank * C.threads + thread; i < length; i += C.threads * C.cluster) best.take(x[i], i);
    }
    const uint32_t place = best.winner(group);
    if (rank == 0 && thread == 0) {
      const uint32_t id = Best<C>::index(place);
      if (p.wide_ids) static_cast<int64_t*>(p.y)[offset[1]] = id;
      else static_cast<int32_t*>(p.y)[offset[1]] = static_cast<int32_t>(id);
    }
    group.barrier();  // other blocks may still read this one's shared memory, and the next row reuses it
  }
};

}  // namespace cermet::argmax
