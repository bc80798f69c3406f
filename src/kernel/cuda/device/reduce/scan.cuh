// cumsum: a block scans a line in chunks, or each thread a line of its own where neighbouring lines lie side by side.
// Sums never subtract terms again, so an infinity or NaN shows only in the sums that include it. Floating sums in
// float32, in an order that lengths fix; integers exactly, clamped or wrapped where they are stored.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/scan.hpp"
#include "kernel/cuda/device/reduce/wide.cuh"

namespace cermet::scan {

/// What sums are held in: float32, float64 for itself, 64 bits for int32, 128 bits for int64.
template <class T>
struct Real {
  float value = 0;
  static CERMET_DEVICE Real of(T x) { return {to_float(x)}; }
  friend CERMET_DEVICE Real operator+(Real a, Real b) { return {a.value + b.value}; }
  CERMET_DEVICE Real up(int distance) const { return {__shfl_up_sync(0xffffffffu, value, distance)}; }
  template <bool Wraps>
  CERMET_DEVICE T stored() const {
    return from_float<T>(value);
  }
};
struct Int32 {
  int64_t value = 0;
  static CERMET_DEVICE Int32 of(int32_t x) { return {x}; }
  friend CERMET_DEVICE Int32 operator+(Int32 a, Int32 b) { return {a.value + b.value}; }
  CERMET_DEVICE Int32 up(int distance) const { return {__shfl_up_sync(0xffffffffu, value, distance)}; }
  template <bool Wraps>
  CERMET_DEVICE int32_t stored() const {
    if constexpr (Wraps) return static_cast<int32_t>(value);
    return static_cast<int32_t>(max_of<int64_t>(-2147483648LL, min_of<int64_t>(2147483647LL, value)));
  }
};
struct Int64 {
  Wide value;
  static CERMET_DEVICE Int64 of(int64_t x) { return {Wide::of(x)}; }
  friend CERMET_DEVICE Int64 operator+(Int64 a, Int64 b) { return {a.value + b.value}; }
  CERMET_DEVICE Int64 up(int distance) const {
    return {{__shfl_up_sync(0xffffffffu, value.low, distance), __shfl_up_sync(0xffffffffu, value.high, distance)}};
  }
  template <bool Wraps>
  CERMET_DEVICE int64_t stored() const {
    if constexpr (Wraps) return static_cast<int64_t>(value.low);
    constexpr int64_t most = 0x7fffffffffffffffLL;
    return value.clamped(-most - 1, most);
  }
};
struct Real64 {
  double value = 0;
  static CERMET_DEVICE Real64 of(double x) { return {x}; }
  friend CERMET_DEVICE Real64 operator+(Real64 a, Real64 b) { return {a.value + b.value}; }
  template <bool Wraps>
  CERMET_DEVICE double stored() const {
    return value;
  }
};
template <class T>
struct SumOf {
  using type = Real<T>;
};
template <>
struct SumOf<int32_t> {
  using type = Int32;
};
template <>
struct SumOf<double> {
  using type = Real64;
};
template <>
struct SumOf<int64_t> {
  using type = Int64;
};

/// One work item: a line.
template <Config C>
struct Lines {
  using Params = scan::Params;
  using T = Element<C.type>;
  using Number = typename SumOf<T>::type;
  static constexpr int each = 4, chunk = threads * each, warps = threads / 32;

  /// Sum of the threads before this one; `total` is that of all.
  template <class Team>
  static CERMET_DEVICE Number team_scan(Team team, Number x, Number& total, Number* scratch) {
    const int lane = static_cast<int>(lane_index()), warp = static_cast<int>(team.warp());
    Number inclusive = x;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const Number other = inclusive.up(offset);
      if (lane >= offset) inclusive = other + inclusive;
    }
    const Number below = inclusive.up(1);
    if (lane == 31) scratch[warp] = inclusive;
    team.sync();
    Number before;
    total = Number{};
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      if (w == warp) before = total;
      total = total + scratch[w];
    }
    team.sync();
    return lane == 0 ? before : before + below;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t line, Team team, char* smem) {
    Number* scratch = reinterpret_cast<Number*>(smem);  // [warps]
    int64_t offset[2];
    offsets_at(p.lines, line, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];
    T* y = static_cast<T*>(p.y) + offset[1];
    Number carry;
    for (int64_t begin = 0; begin < p.length; begin += chunk) {
      const int64_t first = begin + team.rank() * each;
      Number own[each], sum;
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int64_t at = p.reverse ? p.length - 1 - first - i : first + i;
        own[i] = first + i < p.length ? Number::of(x[at * p.x_stride]) : Number{};
        sum = sum + own[i];
      }
      Number total, before = carry + team_scan(team, sum, total, scratch);
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int64_t at = p.reverse ? p.length - 1 - first - i : first + i;
        const Number after = before + own[i];
        const T with = after.template stored<C.wraps>(), without = before.template stored<C.wraps>();
        if (first + i < p.length) y[at * p.y_stride] = p.exclusive ? without : with;
        before = after;
      }
      carry = carry + total;
    }
  }
};

/// One work item: a line for each thread.
template <Config C>
struct Columns {
  using Params = scan::Params;
  using T = Element<C.type>;
  using Number = typename SumOf<T>::type;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    constexpr int ahead = 8;  // loads in flight
    const int64_t line = static_cast<int64_t>(item) * threads + team.rank();
    if (line >= p.lines.count) return;
    int64_t offset[2];
    offsets_at(p.lines, line, offset);
    const int64_t first = p.reverse ? p.length - 1 : 0, step = p.reverse ? -1 : 1;
    const T* x = static_cast<const T*>(p.x) + offset[0] + first * p.x_stride;
    T* y = static_cast<T*>(p.y) + offset[1] + first * p.y_stride;
    Number sum;
    for (int64_t begin = 0; begin < p.length; begin += ahead) {
      T own[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i)
        if (begin + i < p.length) own[i] = x[(begin + i) * step * p.x_stride];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        if (begin + i >= p.length) continue;
        const T without = sum.template stored<C.wraps>();
        sum = sum + Number::of(own[i]);
        const T with = sum.template stored<C.wraps>();
        y[(begin + i) * step * p.y_stride] = p.exclusive ? without : with;
      }
    }
  }
};

}  // namespace cermet::scan
