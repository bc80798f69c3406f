// unique: numbers of slices are sorted, one launch for each pass of a bitonic network; one block finds where groups
// begin; then all slices are written.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/unique.hpp"
#include "kernel/cuda/device/reduce/order.cuh"
#include "kernel/cuda/device/sampling/group.cuh"

namespace cermet::unique {

template <Config C>
struct Slices {
  using T = Element<C.type>;

  static CERMET_DEVICE int64_t offset_of(const Params& p, int64_t slice) {
    if (p.x_step != 0) return slice * p.x_step;
    int64_t offset[1];
    offsets_at(p.x_elements, slice, offset);
    return offset[0];
  }
  /// -1, 0 or 1 as slice a comes before b, equals it or comes after it.
  static CERMET_DEVICE int compare(const Params& p, uint32_t a, uint32_t b) {
    const T* x = static_cast<const T*>(p.x);
    const int64_t from_a = offset_of(p, a), from_b = offset_of(p, b);
    for (int64_t k = 0; k < p.slice.count; ++k) {
      int64_t offset[2];
      offsets_at(p.slice, k, offset);
      const auto left = OrderOf<T>::key(x[from_a + offset[0]]), right = OrderOf<T>::key(x[from_b + offset[0]]);
      if (left != right) return left < right ? -1 : 1;
    }
    return 0;
  }
};

/// One work item: numbers for threads to begin with. Those beyond the last slice stay behind all others.
struct Start {
  using Params = unique::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t i = static_cast<int64_t>(item) * threads + team.rank();
    if (i < p.padded) p.order[i] = static_cast<uint32_t>(i);
    if (i < p.slices) p.leads[i] = 0;
  }
};

/// One work item: a comparison for each thread.
template <Config C>
struct Pass {
  using Params = unique::Params;

  static CERMET_DEVICE bool precedes(const Params& p, uint32_t a, uint32_t b) {
    if (a >= p.slices || b >= p.slices) return a < b;
    const int order = Slices<C>::compare(p, a, b);
    return order != 0 ? order < 0 : a < b;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t t = static_cast<int64_t>(item) * threads + team.rank();
    if (t >= p.padded / 2) return;
    const int64_t i = 2 * t - (t & (p.step - 1)), j = i + p.step;
    const uint32_t a = p.order[i], b = p.order[j];
    const bool rising = (i & p.size) == 0;
    if (rising ? precedes(p, b, a) : precedes(p, a, b)) {
      p.order[i] = b;
      p.order[j] = a;
    }
  }
};

/// One work item: everything.
template <Config C>
struct Groups {
  using Params = unique::Params;

  /// Calls found(i, how many before it) for every i < count where test(i) holds; returns how many there are.
  template <class Team, class Test, class Found>
  static __device__ uint64_t number(Team team, Group<Team>& group, int64_t count, Test&& test, Found&& found) {
    uint64_t carry = 0;
    for (int64_t begin = 0; begin < count; begin += threads) {
      const int64_t i = begin + team.rank();
      const bool holds = i < count && test(i);
      uint64_t total;
      const uint64_t before = group.block_scan(holds, total);
      if (holds) found(i, static_cast<uint32_t>(carry + before));
      carry += total;
    }
    return carry;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t, Team team, char* smem) {
    Group group(team, *reinterpret_cast<GroupScratch*>(smem));
    const uint64_t groups = number(
        team, group, p.slices,
        [&](int64_t i) { return i == 0 || Slices<C>::compare(p, p.order[i - 1], p.order[i]) != 0; },
        [&](int64_t i, uint32_t g) {
          p.head[g] = static_cast<uint32_t>(i);
          p.number[g] = g;
          p.leads[p.order[i]] = g + 1;
        });
    if (team.rank() == 0) {
      p.head[groups] = static_cast<uint32_t>(p.slices);
      *p.count = static_cast<int64_t>(groups);
    }
    team.sync();
    if (!p.sorted)
      number(
          team, group, p.slices, [&](int64_t i) { return p.leads[i] != 0; },
          [&](int64_t i, uint32_t n) { p.number[p.leads[i] - 1] = n; });
  }
};

/// One work item: a place in the order for each thread. Groups are found by halving.
struct Lists {
  using Params = unique::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t i = static_cast<int64_t>(item) * threads + team.rank();
    if (i >= p.slices) return;
    const int64_t groups = *p.count;
    int64_t low = 0, high = groups;  // head[low] <= i < head[high]
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (p.head[middle] <= i ? low : high) = middle;
    }
    const uint32_t slice = p.order[i], n = p.number[low];
    p.inverse[slice] = n;
    if (p.head[low] == i) {
      p.indices[n] = slice;
      p.counts[n] = p.head[low + 1] - p.head[low];
    }
    if (i >= groups) p.indices[i] = p.counts[i] = 0;
  }
};

/// One work item: an element of y for each thread.
template <Config C>
struct Values {
  using Params = unique::Params;
  using T = Element<C.type>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t position = static_cast<int64_t>(item) * threads + team.rank();
    if (position >= p.slices * p.slice.count) return;
    const int64_t n = position / p.slice.count;
    int64_t offset[2];
    offsets_at(p.slice, position - n * p.slice.count, offset);
    T& y = static_cast<T*>(p.y)[n * p.y_step + offset[1]];
    if (n < *p.count) y = static_cast<const T*>(p.x)[Slices<C>::offset_of(p, p.indices[n]) + offset[0]];
    else y = T{};
  }
};

}  // namespace cermet::unique
