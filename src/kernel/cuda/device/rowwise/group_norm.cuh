// group_norm and instance_norm: rows are groups of channels, whose weight and bias go by channel. One work item is a group of a sample.
#pragma once

#include "kernel/cuda/device/rowwise/group_norm.hpp"
#include "kernel/cuda/device/rowwise/sources.cuh"
#include "kernel/cuda/device/rowwise/statistics.cuh"

namespace cermet::group_norm {

struct Config {
  int threads = 512;
  DType x = DType::f32, y = DType::f32;
  bool weights = false, biases = false;
  DType weight = DType::f32, bias = DType::f32;
};

template <Config C>
struct Task {
  using Params = group_norm::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    using Map = RowMap<RowShape{.lanes = C.threads, .threads = C.threads}, Team>;
    RowReducer<Map> reduce(smem);
    const int64_t group = item % static_cast<uint32_t>(p.groups);
    const RowIndex index = row_index(p.dims, item / static_cast<uint32_t>(p.groups));
    const int64_t length = p.group_channels * p.positions, begin = group * length;
    const Map map(static_cast<int>(length));
    const PlainSource<Element<C.x>, 1> source{row_of<const Element<C.x>>(p.x, index) + begin};
    RawRow raw(map, source, true);
    auto row = make_row(map, source, raw);
    const float mean = reduce.template operator()<Sum>(norm::value_sum(row)) / static_cast<float>(map.length);
    const float scale = norm::inverse_root(reduce.template operator()<Sum>(norm::square_sum(row, mean)), map.length, p.eps);
    Element<C.y>* y = row_of<Element<C.y>>(p.y, index) + begin;  // [group_channels, positions]
    row.each([&](int, int64_t column, float(&v)[1]) {
      const int64_t channel = group * p.group_channels + static_cast<uint32_t>(column) / static_cast<uint32_t>(p.positions);
      float value = (v[0] - mean) * scale;
      if constexpr (C.weights) value *= to_float(static_cast<const Element<C.weight>*>(p.weight)[channel]);
      if constexpr (C.biases) value += to_float(static_cast<const Element<C.bias>*>(p.bias)[channel]);
      y[column] = from_float<Element<C.y>>(value);
    });
    reduce.finish();
  }
};

}  // namespace cermet::group_norm
