// argmax: the place of a row's largest element; NaN is above everything, of equal elements the first. A cluster shares a long row.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/sampling/argmax.hpp"
#include "kernel/cuda/device/sampling/group.cuh"
#include "op/float_order.hpp"

namespace cermet::argmax {

struct Config {
  DType x;
  int threads, cluster;
};

/// The largest key so far and where it was first.
struct Best {
  uint32_t key = 0, index = 0;
  __device__ __forceinline__ void take(float value, uint32_t i) {
    const uint32_t k = order_key(value);
    if (k > key) key = k, index = i;
  }
  /// Larger for a larger key, then for a smaller index. A key of a number is never 0.
  __device__ __forceinline__ uint64_t packed() const { return static_cast<uint64_t>(key) << 32 | (0xffffffffu - index); }
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
    Best best;
    if (p.vectors) {
      const uint32_t steps = length / width, stride = C.threads * C.cluster;
#pragma unroll 8
      for (uint32_t s = rank * C.threads + thread; s < steps; s += stride) {
        const auto v = reinterpret_cast<const Vector<T, width>*>(x)[s];
#pragma unroll
        for (int j = 0; j < width; ++j) best.take(to_float(v[j]), s * width + j);
      }
      for (uint32_t i = steps * width + rank * C.threads + thread; i < length; i += stride) best.take(to_float(x[i]), i);
    } else {
#pragma unroll 4
      for (uint32_t i = rank * C.threads + thread; i < length; i += C.threads * C.cluster) best.take(to_float(x[i]), i);
    }
    const uint64_t all = group.template reduce<MaxU64>(best.packed());
    if (rank == 0 && thread == 0) {
      const uint32_t id = 0xffffffffu - static_cast<uint32_t>(all);
      if (p.wide_ids) static_cast<int64_t*>(p.y)[offset[1]] = id;
      else static_cast<int32_t*>(p.y)[offset[1]] = static_cast<int32_t>(id);
    }
    group.barrier();  // other blocks may still read this one's shared memory, and the next row reuses it
  }
};

}  // namespace cermet::argmax
