// scatter_nd: the updates that follow the copy of x, in order and without atomics on results. A first pass finds the
// place of every update, and the first and the last update of every place. In a second, threads of the last update
// write it, or those of the first walk through the later ones and combine them.
#pragma once

#include "kernel/cuda/device/movement/combine.cuh"
#include "kernel/cuda/device/movement/coordinates.cuh"
#include "kernel/cuda/device/movement/scatter_nd.hpp"

namespace cermet::scatter_nd {

/// One work item: an update for each thread.
struct Find {
  using Params = scatter_nd::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t tuple = static_cast<int64_t>(item) * threads + team.rank();
    if (tuple >= p.tuples.count) return;
    int64_t offset[2], slice, place;
    offsets_at(p.tuples, tuple, offset);
    const bool legal = find_slice(p.coordinates, offset[0], slice, place);
    p.places[tuple] = legal ? place : -1;
    if (!legal) return;
    atomicMin(&p.first[place], static_cast<int32_t>(tuple));
    atomicMax(&p.last[place], static_cast<int32_t>(tuple));
  }
};

/// One work item: an element of an update for each thread.
template <Config C>
struct Apply {
  using Params = scatter_nd::Params;
  using Step = scatter::Combine<C.type, C.reduction>;
  using T = Element<C.type>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.tuples.count * p.slice.count) return;
    const int64_t tuple = position / p.slice.count, place = p.places[tuple];
    if (place < 0) return;
    constexpr bool replaces = C.reduction == scatter::Reduction::none;
    const int32_t last = p.last[place];
    if ((replaces ? last : p.first[place]) != tuple) return;
    int64_t of_tuple[2], of_slice[2], start, same;
    offsets_at(p.tuples, tuple, of_tuple);
    offsets_at(p.slice, position - tuple * p.slice.count, of_slice);
    find_slice(p.coordinates, of_tuple[0], start, same);
    T& target = static_cast<T*>(p.y)[start + of_slice[0]];
    const T* updates = static_cast<const T*>(p.updates) + of_slice[1];
    if constexpr (replaces) {
      target = updates[of_tuple[1]];
    } else {
      auto value = Step::combined(Step::widened(target), Step::widened(updates[of_tuple[1]]));
      for (int64_t t = tuple + 1; t <= last; ++t) {
        if (p.places[t] != place) continue;
        offsets_at(p.tuples, t, of_tuple);
        value = Step::combined(value, Step::widened(updates[of_tuple[1]]));
      }
      target = Step::narrowed(value);
    }
  }
};

}  // namespace cermet::scatter_nd
