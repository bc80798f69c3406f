// group_norm and instance_norm: rows are groups of channels, whose weight and bias go by channel.
#pragma once

#include "kernel/cuda/device/rowwise/group_norm.hpp"
#include "kernel/cuda/device/rowwise/region.cuh"

namespace cermet::group_norm {

/// value * weight + bias of a channel, each where it is given.
template <auto C>
CERMET_DEVICE float scaled(const Params& p, float value, int64_t channel) {
  if constexpr (C.weights) value *= to_float(static_cast<const Element<C.weight>*>(p.weight)[channel]);
  if constexpr (C.biases) value += to_float(static_cast<const Element<C.bias>*>(p.bias)[channel]);
  return value;
}

/// This thread's part of the sum of (v - mean)^2.
template <class Row>
CERMET_DEVICE float square_sum(Row& row, float mean = 0) {
  float squares[2] = {0, 0};  // two chains
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) squares[k % 2] = fmaf(v[k] - mean, v[k] - mean, squares[k % 2]);
  });
  return squares[0] + squares[1];
}

template <class Row>
CERMET_DEVICE float value_sum(Row& row) {
  float total[2] = {0, 0};
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) total[k % 2] += v[k];
  });
  return total[0] + total[1];
}

template <Config C>
struct Task {
  using Params = group_norm::Params;
  using Values = float[C.layout.width];
  static constexpr int width = C.layout.width;
  /// Whether a vector lies in one channel.
  static constexpr bool whole = width == 1 || (C.positions > 0 && C.positions % width == 0);
  static constexpr Overlap overlap = Overlap::late;

  static CERMET_DEVICE uint32_t positions_of(const Params& p) {
    return C.positions > 0 ? static_cast<uint32_t>(C.positions) : p.positions;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    using Partition = RowPartition<C.layout, Team>;
    RowReducer<Partition> reduce(smem);
    const RowCoord<Partition> coord(item, p.dims, p.rows);
    const Partition partition(p.length);
    const PlainSource<Element<C.x>, width> source{coord.template of<const Element<C.x>>(p.x)};
    RawRow raw(partition, source, coord.active);
    auto row = make_row(partition, source, raw);
    const float mean = reduce.template operator()<Sum>(value_sum(row)) / static_cast<float>(partition.length);
    row.forget_values();
    const float scale =
        norm::inverse_root(reduce.template operator()<Sum>(square_sum(row, mean)), partition.length, p.eps);
    row.forget_values();
    const int64_t first = static_cast<int64_t>(coord.number % p.groups) * p.group_channels;  // channel
    auto* const y = coord.template of<Element<C.y>>(p.y);
    if (coord.active)
      row.each([&](int, int64_t column, Values& v) {
        const auto at = static_cast<uint32_t>(column);
        const uint32_t channel = at / positions_of(p);
#pragma unroll
        for (int k = 0; k < width; ++k)
          v[k] = scaled<C>(p, (v[k] - mean) * scale,
                           first + (whole ? channel : (at + static_cast<uint32_t>(k)) / positions_of(p)));
        store_vector(y + column, from_floats<Element<C.y>>(v));
      });
    reduce.finish();
  }
};

}  // namespace cermet::group_norm
