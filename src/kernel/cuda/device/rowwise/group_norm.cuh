// group_norm and instance_norm: rows are groups of channels, whose weight and bias go by channel. One work item is a group of a sample.
#pragma once

#include "kernel/cuda/device/rowwise/group_norm.hpp"
#include "kernel/cuda/device/rowwise/norm.cuh"

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

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    float* scratch = reinterpret_cast<float*>(smem);  // [2][32]
    const int64_t group = item % static_cast<uint32_t>(p.groups);
    const RowIndex index = row_index(p.dims, item / static_cast<uint32_t>(p.groups));
    const int64_t length = p.group_channels * p.positions, begin = group * length;
    const RowMap<0, C.threads, 1> map(static_cast<int>(length));
    auto row = make_row(map, PlainSource<Element<C.x>, 1>{row_of<const Element<C.x>>(p.x, index) + begin});
    const float mean = norm::row_mean<C.threads>(row, map.length, scratch);
    const float scale = norm::deviation_scale<C.threads>(row, mean, map.length, p.eps, scratch + 32);
    Element<C.y>* y = row_of<Element<C.y>>(p.y, index) + begin;  // [group_channels, positions]
    row.each([&](int, int column, float(&v)[1]) {
      const int64_t channel = group * p.group_channels + static_cast<uint32_t>(column) / static_cast<uint32_t>(p.positions);
      float value = (v[0] - mean) * scale;
      if constexpr (C.weights) value *= to_float(static_cast<const Element<C.weight>*>(p.weight)[channel]);
      if constexpr (C.biases) value += to_float(static_cast<const Element<C.bias>*>(p.bias)[channel]);
      y[column] = from_float<Element<C.y>>(value);
    });
    end_of_row<C.threads>();
  }
};

}  // namespace cermet::group_norm
