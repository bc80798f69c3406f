// scatter: the updates that follow the copy of x, in index order and without atomics. Either a thread walks the updates
// of a column and writes each to its place, or a thread owns a place and looks through the indices for it. An index out
// of range changes nothing.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/combine.cuh"
#include "kernel/cuda/device/movement/scatter.hpp"

namespace cermet::scatter {

template <Config C>
using Combiner = Combine<C.type, C.reduction>;

CERMET_DEVICE int64_t wrapped(const Params& p, int64_t at) {
  const int64_t index = load_index(p.indices, p.wide_indices, at);
  return index < 0 ? index + p.size : index;
}

/// One work item: a column for each thread. For types in which a result accumulates as it is stored.
template <Config C>
struct Columns {
  using Params = scatter::Params;
  using T = Element<C.type>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t column = static_cast<int64_t>(item) * threads + team.rank();
    if (column >= p.axes.count) return;
    int64_t offset[3];
    offsets_at(p.axes, column, offset);
    T* y = static_cast<T*>(p.y) + offset[0];
    const T* updates = static_cast<const T*>(p.updates) + offset[2];
    for (int64_t i = 0; i < p.count; ++i) {
      const int64_t index = wrapped(p, offset[1] + i * p.indices_stride);
      const T update = updates[i * p.updates_stride];
      if (index < 0 || index >= p.size) continue;
      T& target = y[index * p.y_stride];
      if constexpr (C.reduction == Reduction::none) target = update;
      else
        target =
            Combiner<C>::narrowed(Combiner<C>::combined(Combiner<C>::widened(target), Combiner<C>::widened(update)));
    }
  }
};

/// One work item: an element of y for each thread.
template <Config C>
struct Elements {
  using Params = scatter::Params;
  using T = Element<C.type>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.axes.count) return;
    int64_t y_at = 0, indices_at = 0, updates_at = 0, place = 0;
    for_coordinates(p.axes, position, [&](int a, int64_t at) {
      y_at += at * p.axes.stride[0][a];
      indices_at += at * p.axes.stride[1][a];
      updates_at += at * p.axes.stride[2][a];
      if (a == p.axis) place = at;
    });
    T& target = static_cast<T*>(p.y)[y_at];
    const T* updates = static_cast<const T*>(p.updates) + updates_at;
    if constexpr (C.reduction == Reduction::none) {
      int64_t last = -1;
#pragma unroll 4
      for (int64_t i = 0; i < p.count; ++i) last = wrapped(p, indices_at + i * p.indices_stride) == place ? i : last;
      if (last >= 0) target = updates[last * p.updates_stride];
    } else {
      auto value = Combiner<C>::widened(target);
      bool touched = false;
#pragma unroll 4
      for (int64_t i = 0; i < p.count; ++i) {
        if (wrapped(p, indices_at + i * p.indices_stride) != place) continue;
        value = Combiner<C>::combined(value, Combiner<C>::widened(updates[i * p.updates_stride]));
        touched = true;
      }
      if (touched) target = Combiner<C>::narrowed(value);
    }
  }
};

}  // namespace cermet::scatter
