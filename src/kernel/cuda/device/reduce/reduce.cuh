// Reductions of floating types along axes: accumulated in float32 in an order that the configuration fixes, one
// rounding.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/reduce.hpp"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::reduce {

struct Product {
  static CERMET_DEVICE float identity() { return 1.0f; }
  static CERMET_DEVICE float combine(float a, float b) { return a * b; }
};
/// NaN where any operand is.
struct Minimum {
  static CERMET_DEVICE float identity() { return infinity(); }
  static CERMET_DEVICE float combine(float a, float b) { return a < b || a != a ? a : b; }
};

template <Kind K>
struct OperationOf {
  using type = Sum;
};
template <>
struct OperationOf<Kind::prod> {
  using type = Product;
};
template <>
struct OperationOf<Kind::max> {
  using type = Maximum;
};
template <>
struct OperationOf<Kind::min> {
  using type = Minimum;
};

/// The last axis is reduced. One work item: a result, or one for each warp; a range of its terms where they are split.
template <Config C>
struct Rows {
  using Params = reduce::Params;
  using T = Element<C.x>;
  using Out = Element<C.out>;
  using Op = typename OperationOf<C.kind>::type;
  static constexpr int width = per_16_bytes<T>, groups = threads / C.group;

  template <int Width, class Team>
  static CERMET_DEVICE float accumulate(Team team, const Params& p, const T* x, int64_t begin, int64_t end) {
    using Words = Vector<T, Width>;
    float total[Width];
#pragma unroll
    for (int i = 0; i < Width; ++i) total[i] = Op::identity();
    const Words* words = reinterpret_cast<const Words*>(x);
    const auto take = [&](const Words& v) {
#pragma unroll
      for (int i = 0; i < Width; ++i) total[i] = Op::combine(total[i], to_float(v[i]));
    };
    const int64_t first = begin + team.rank() % C.group;
    if (p.reduced.rank == 1) {
      const int64_t stride = p.reduced.stride[0][0];
#pragma unroll 4
      for (int64_t at = first; at < end; at += C.group) take(words[at * stride]);
    } else {
#pragma unroll 2
      for (int64_t at = first; at < end; at += C.group) {
        int64_t offset[1];
        offsets_at(p.reduced, at, offset);
        take(words[offset[0]]);
      }
    }
#pragma unroll
    for (int step = Width / 2; step > 0; step /= 2)
#pragma unroll
      for (int i = 0; i < step; ++i) total[i] = Op::combine(total[i], total[i + step]);
    return total[0];
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    const int64_t index = static_cast<int64_t>(item) * groups + team.rank() / C.group, result = index / p.splits,
                  split = index - result * p.splits;
    const bool exists = result < p.kept.count;
    int64_t offset[2] = {};
    if (exists) offsets_at(p.kept, result, offset);
    const int64_t begin = split * p.split_terms, end = exists ? min_of(begin + p.split_terms, p.reduced.count) : 0;
    const T* x = static_cast<const T*>(p.x) + offset[0];
    float total = p.vectors ? accumulate<width>(team, p, x, begin, end) : accumulate<1>(team, p, x, begin, end);
    if constexpr (groups == 1) total = team_reduce<Op>(team, total, reinterpret_cast<float*>(smem));
    else total = warp_reduce<Op>(total);
    if (p.divides) total /= p.divisor;
    if (exists && team.rank() % C.group == 0)
      static_cast<Out*>(p.y)[offset[1] + split * p.split_stride] = from_float<Out>(total);
    if constexpr (groups == 1) team.sync();
  }
};

/// The last axis is kept. One work item: a tile of neighbouring results, or a range of their terms; each of 8 groups of
/// threads takes every eighth.
template <Config C>
struct Columns {
  using Params = reduce::Params;
  using T = Element<C.x>;
  using Out = Element<C.out>;
  using Op = typename OperationOf<C.kind>::type;
  static constexpr int width = per_16_bytes<T>;
  static constexpr int shared_bytes = threads * 8 * 4;

  template <int Width, class Team>
  static CERMET_DEVICE void reduce(Team team, const Params& p, uint32_t item, float* partial) {
    using Words = Vector<T, Width>;
    const int lane = static_cast<int>(team.rank()) % column_lanes, group = static_cast<int>(team.rank()) / column_lanes;
    const int64_t tile = item / p.splits, split = item - tile * p.splits, column = (tile * column_lanes + lane) * Width;
    const bool exists = column < p.kept.count;
    int64_t offset[2] = {};
    if (exists) offsets_at(p.kept, column, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];
    const int64_t begin = split * p.split_terms, end = exists ? min_of(begin + p.split_terms, p.reduced.count) : 0;
    float total[Width];
#pragma unroll
    for (int i = 0; i < Width; ++i) total[i] = Op::identity();
#pragma unroll 4
    for (int64_t at = begin + group; at < end; at += column_groups) {
      int64_t from[1] = {at * p.reduced.stride[0][0]};
      if (p.reduced.rank > 1) offsets_at(p.reduced, at, from);
      const Words v = *reinterpret_cast<const Words*>(x + from[0]);
#pragma unroll
      for (int i = 0; i < Width; ++i) total[i] = Op::combine(total[i], to_float(v[i]));
    }
#pragma unroll
    for (int i = 0; i < Width; ++i) partial[(i * column_groups + group) * column_lanes + lane] = total[i];
    team.sync();
    // Each thread finishes the columns of its group's number.
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      if (i % column_groups != group) continue;
      float sum = partial[i * column_groups * column_lanes + lane];
#pragma unroll
      for (int g = 1; g < column_groups; ++g)
        sum = Op::combine(sum, partial[(i * column_groups + g) * column_lanes + lane]);
      if (p.divides) sum /= p.divisor;
      if (exists) static_cast<Out*>(p.y)[offset[1] + i + split * p.split_stride] = from_float<Out>(sum);
    }
    team.sync();
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    if (p.vectors) reduce<width>(team, p, item, reinterpret_cast<float*>(smem));
    else reduce<1>(team, p, item, reinterpret_cast<float*>(smem));
  }
};

}  // namespace cermet::reduce
