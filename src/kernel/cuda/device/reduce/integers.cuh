// Reductions of integers: sums are exact and clamped once; products are clamped after every factor, in index order; a mean is rounded half to even.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/reduce.hpp"
#include "kernel/cuda/device/reduce/wide.cuh"

namespace cermet::reduce {

template <class T>
inline constexpr int64_t lowest = static_cast<int64_t>(uint64_t{1} << (sizeof(T) * 8 - 1)) * (sizeof(T) == 8 ? 1 : -1);
template <class T>
inline constexpr int64_t highest = -(lowest<T> + 1);

struct IntegerConfig {
  Kind kind;
  DType type;
};

/// One work item: a result for each warp.
template <IntegerConfig C>
struct Integers {
  using Params = IntegerParams;
  using T = Element<C.type>;

  static __device__ __forceinline__ int64_t load(const Params& p, const T* x, int64_t at) {
    int64_t offset[1];
    offsets_at(p.reduced, at, offset);
    return x[offset[0]];
  }

  static __device__ __forceinline__ int64_t reduce(const Params& p, const T* x) {
    const int64_t lane = lane_index();
    if constexpr (C.kind == Kind::prod) {  // every lane computes the same
      int64_t value = 1;
      for (int64_t at = 0; at < p.reduced.count; ++at) value = Wide::product(value, load(p, x, at)).clamped(lowest<T>, highest<T>);
      return value;
    } else if constexpr (C.kind == Kind::max || C.kind == Kind::min) {
      int64_t value = C.kind == Kind::max ? lowest<T> : highest<T>;
      const auto take = [&](int64_t other) { value = C.kind == Kind::max ? max_of(value, other) : min_of(value, other); };
      for (int64_t at = lane; at < p.reduced.count; at += 32) take(load(p, x, at));
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) take(__shfl_xor_sync(0xffffffffu, value, offset));
      return value;
    } else {
      Wide sum;
      for (int64_t at = lane; at < p.reduced.count; at += 32) sum = sum + Wide::of(load(p, x, at));
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2)
        sum = sum + Wide{__shfl_xor_sync(0xffffffffu, sum.low, offset), __shfl_xor_sync(0xffffffffu, sum.high, offset)};
      if (C.kind == Kind::mean && p.reduced.count > 0) sum = rounded_quotient(sum, p.reduced.count);
      return sum.clamped(lowest<T>, highest<T>);
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t result = static_cast<int64_t>(item) * (threads / 32) + team.warp();
    if (result >= p.kept.count) return;
    int64_t offset[2];
    offsets_at(p.kept, result, offset);
    const int64_t value = reduce(p, static_cast<const T*>(p.x) + offset[0]);
    if (lane_index() == 0) static_cast<T*>(p.y)[offset[1]] = static_cast<T>(value);
  }
};

}  // namespace cermet::reduce
