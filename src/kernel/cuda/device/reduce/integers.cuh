// Reductions of integers: sums are exact, and clamped once or wrapped; products are clamped after every factor, in
// index order; a mean is rounded half to even.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/reduce.hpp"
#include "kernel/cuda/device/reduce/wide.cuh"

namespace cermet::reduce {

template <class T>
inline constexpr bool is_unsigned = static_cast<T>(-1) > static_cast<T>(0);
template <class T>
inline constexpr int64_t lowest = is_unsigned<T> ? 0 : static_cast<int64_t>(~uint64_t{0} << (sizeof(T) * 8 - 1));
/// Of u64 the bits, as of a signed integer.
template <class T>
inline constexpr int64_t highest = is_unsigned<T> ? static_cast<int64_t>(~uint64_t{0} >> (64 - sizeof(T) * 8))
                                                  : ~lowest<T>;

/// What values are reduced as: u64 does not fit the other.
template <bool Unsigned>
struct ValueOf {
  using type = int64_t;
};
template <>
struct ValueOf<true> {
  using type = uint64_t;
};

/// One work item: a result for each warp.
template <IntegerConfig C>
struct Integers {
  using Params = PlainParams;
  using T = Element<C.type>;
  using Value = typename ValueOf<is_unsigned<T>>::type;
  static constexpr auto least = static_cast<Value>(lowest<T>),
                        most = static_cast<Value>(C.type == DType::boolean ? 1 : highest<T>);

  static CERMET_DEVICE Value clamped(Wide x) {
    if constexpr (C.type == DType::u64) return x.high != 0 ? most : x.low;
    else return static_cast<Value>(x.clamped(static_cast<int64_t>(least), static_cast<int64_t>(most)));
  }
  static CERMET_DEVICE Value product(Value a, Value b) {
    if constexpr (C.type == DType::u64) return __umul64hi(a, b) != 0 ? most : a * b;
    else return clamped(Wide::product(static_cast<int64_t>(a), static_cast<int64_t>(b)));
  }

  static CERMET_DEVICE Value load(const Params& p, const T* x, int64_t at) {
    int64_t offset[1];
    offsets_at(p.reduced, at, offset);
    return x[offset[0]];
  }

  static CERMET_DEVICE Value reduce(const Params& p, const T* x) {
    const int64_t lane = lane_index();
    if constexpr (C.kind == Kind::prod) {  // every lane computes the same
      Value value = 1;
      for (int64_t at = 0; at < p.reduced.count; ++at) value = product(value, load(p, x, at));
      return value;
    } else if constexpr (C.kind == Kind::max || C.kind == Kind::min) {
      Value value = C.kind == Kind::max ? least : most;
      const auto take = [&](Value other) { value = C.kind == Kind::max ? max_of(value, other) : min_of(value, other); };
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
      if constexpr (C.wraps) return static_cast<Value>(sum.low);
      else return clamped(sum);
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t result = static_cast<int64_t>(item) * (threads / 32) + team.warp();
    if (result >= p.kept.count) return;
    int64_t offset[2];
    offsets_at(p.kept, result, offset);
    const Value value = reduce(p, static_cast<const T*>(p.x) + offset[0]);
    if (lane_index() == 0) static_cast<T*>(p.y)[offset[1]] = static_cast<T>(value);
  }
};

}  // namespace cermet::reduce
