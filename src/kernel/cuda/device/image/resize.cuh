// resize: a thread for each result, or for 16 bytes of results along an axis that is copied.
#pragma once

#include "kernel/cuda/device/image/resize.hpp"
#include "kernel/cuda/device/movement/axes.cuh"

namespace cermet::resize {

/// One item: `threads` elements of an axis.
struct TableTask {
  using Params = TableParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t i = static_cast<int64_t>(item) * threads + team.rank();
    if (i >= p.axis.out) return;
    p.table.outside[i] =
        sample(p.rule, p.axis, i, p.table.place + i * p.axis.taps, p.table.weight + i * p.axis.taps, 1);
  }
};

template <Config C>
struct Task {
  using Params = resize::Params;
  using T = Element<C.type>;
  using Run = Vector<T, C.run>;

  static CERMET_DEVICE T rounded(float x) {
    if constexpr (C.type == DType::u8) return static_cast<T>(__float2int_rn(fminf(fmaxf(x, 0.0f), 255.0f)));
    else return from_float<T>(x);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.axes.count) return;
    int64_t from = 0, to = 0;
    int32_t at[most_resized] = {};
    for_coordinates(p.axes, position, [&](int a, int64_t i) {
      const int slot = p.slot[a];
      to += i * p.axes.stride[1][a];
      if (slot < 0) from += i * p.axes.stride[0][a];
#pragma unroll
      for (int s = 0; s < most_resized; ++s)
        if (s == slot) at[s] = static_cast<int32_t>(i);
    });
    Run* y = static_cast<Run*>(p.y) + to;
    const Run* x = static_cast<const Run*>(p.x) + from;
    if (p.crops) {
      bool outside = false;
#pragma unroll
      for (int s = 0; s < most_resized; ++s) outside = outside || (p.tables[s].place && p.tables[s].outside[at[s]]);
      if (outside) {
        Run filler;
#pragma unroll
        for (int r = 0; r < C.run; ++r) filler[r] = *reinterpret_cast<const T*>(p.filler);
        *y = filler;
        return;
      }
    }
    if constexpr (C.nearest) {
      int64_t offset = 0;
#pragma unroll
      for (int s = 0; s < most_resized; ++s)
        if (p.tables[s].place) offset += p.tables[s].place[at[s]] * p.stride[s];
      *y = x[offset];
    } else {
      float total[C.run] = {};
      blend<0>(p, at, x, 1.0f, total);
      Run result;
#pragma unroll
      for (int r = 0; r < C.run; ++r) result[r] = rounded(total[r]);
      *y = result;
    }
  }

  /// Adds the taps of tables S and on, times `weight`.
  template <int S>
  static CERMET_DEVICE void blend(const Params& p, const int32_t (&at)[most_resized], const Run* x, float weight,
                                  float (&total)[C.run]) {
    if constexpr (S == most_resized) {
      const Run values = *x;
#pragma unroll
      for (int r = 0; r < C.run; ++r) total[r] = fmaf(weight, to_float(values[r]), total[r]);
    } else {
      const Table& table = p.tables[S];
      const int64_t first = static_cast<int64_t>(at[S]) * p.taps[S];
#pragma unroll 1
      for (int k = 0; k < p.taps[S]; ++k) {
        const bool given = table.place != nullptr;
        blend<S + 1>(p, at, given ? x + table.place[first + k] * p.stride[S] : x,
                     given ? weight * table.weight[first + k] : weight, total);
      }
    }
  }
};

}  // namespace cermet::resize
