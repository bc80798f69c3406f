// iota: an element for each thread, start + step * position. size_of: numbers that the launch brings.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/sizes.hpp"

namespace cermet::sizes {

template <Config C>
struct Iota {
  using Params = IotaParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using T = Element<C.type>;
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.axes.count) return;
    int64_t offset[2];
    offsets_at(p.axes, position, offset);
    T& y = static_cast<T*>(p.y)[offset[0]];
    const T start = *static_cast<const T*>(p.start);
    if constexpr (C.type == DType::i32 || C.type == DType::i64)
      y = static_cast<T>(static_cast<uint64_t>(start) +
                         static_cast<uint64_t>(static_cast<int64_t>(p.step)) * static_cast<uint64_t>(offset[1]));
    else
      y = from_float<T>(
          static_cast<float>(static_cast<double>(to_float(start)) + p.step * static_cast<double>(offset[1])));
  }
};

struct Sizes {
  using Params = SizesParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t, Team team, char*) {
    if (team.rank() < p.count) p.y[team.rank() * p.stride] = p.size[team.rank()];
  }
};

}  // namespace cermet::sizes
