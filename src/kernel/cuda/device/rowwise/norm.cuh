// rms_norm, add_rms_norm and layer_norm: statistics in float32 over a row, then the row scaled. One work item is a block's rows.
#pragma once

#include "kernel/cuda/device/rowwise/norm.hpp"
#include "kernel/cuda/device/rowwise/sources.cuh"

namespace cermet::norm {

enum class Kind : uint8_t { rms, layer };

struct Config {
  int columns = 0;  ///< elements of a row, held in registers; 0: read again for each pass
  int lanes = 256, threads = 256, width = 1;
  Kind kind = Kind::rms;
  bool add = false, round_sum = false;
  DType x = DType::f32, residual = DType::f32, y = DType::f32;
  Along weights = Along::none, biases = Along::none;
  DType weight = DType::f32, bias = DType::f32;
};

/// 1 / sqrt(mean square + eps) of a row of `length` values.
template <int Lanes, class Row>
__device__ __forceinline__ float rms_scale(Row& row, int length, float eps, float* scratch) {
  float squares[2] = {0, 0};  // two chains
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) squares[k % 2] = fmaf(v[k], v[k], squares[k % 2]);
  });
  return rsqrtf(row_reduce<Sum, Lanes>(squares[0] + squares[1], scratch) / static_cast<float>(length) + eps);
}

template <int Lanes, class Row>
__device__ __forceinline__ float row_mean(Row& row, int length, float* scratch) {
  float total[2] = {0, 0};
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) total[k % 2] += v[k];
  });
  return row_reduce<Sum, Lanes>(total[0] + total[1], scratch) / static_cast<float>(length);
}

/// 1 / sqrt(variance + eps), from the deviations from the mean.
template <int Lanes, class Row>
__device__ __forceinline__ float deviation_scale(Row& row, float mean, int length, float eps, float* scratch) {
  float squares[2] = {0, 0};
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) squares[k % 2] = fmaf(v[k] - mean, v[k] - mean, squares[k % 2]);
  });
  return rsqrtf(row_reduce<Sum, Lanes>(squares[0] + squares[1], scratch) / static_cast<float>(length) + eps);
}

template <Config C>
struct Task {
  using Params = norm::Params;
  using Map = RowMap<C.columns, C.lanes, C.width>;
  using Values = float[C.width];

  /// Weights are read again by every row: into the L2 while the previous task still runs.
  static __device__ void prefetch(const Params& p, uint32_t) {
    if constexpr (C.weights == Along::each && Map::held) {
      const Map map(p.length);
#pragma unroll
      for (int i = 0; i < Map::vectors; ++i)
        if (map.inside(i)) prefetch_l2(static_cast<const Element<C.weight>*>(p.weight) + map.column(i));
    }
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    constexpr uint32_t rows_per_block = C.threads / C.lanes;
    float* scratch = reinterpret_cast<float*>(smem);  // [2][32]
    const uint32_t number = item * rows_per_block + threadIdx.x / C.lanes;
    const bool active = rows_per_block == 1 || number < p.rows;
    const RowIndex index = row_index(p.dims, active ? number : p.rows - 1);  // surplus lanes take part in the reductions of their warp
    const Map map(p.length);
    auto row = [&] {
      const Element<C.x>* x = row_of<const Element<C.x>>(p.x, index);
      if constexpr (C.add)
        return make_row(map, SumSource<Element<C.x>, Element<C.residual>, C.width, C.round_sum>{x, row_of<const Element<C.residual>>(p.residual, index)});
      else return make_row(map, PlainSource<Element<C.x>, C.width>{x});
    }();
    const AlongRow<C.weights, Element<C.weight>, Map> weight(map, p.weight);
    const AlongRow<C.biases, Element<C.bias>, Map> bias(map, p.bias);
    float mean = 0, scale;
    if constexpr (C.kind == Kind::rms) {
      scale = rms_scale<C.lanes>(row, map.length, p.eps, scratch);
    } else {
      mean = row_mean<C.lanes>(row, map.length, scratch);
      scale = deviation_scale<C.lanes>(row, mean, map.length, p.eps, scratch + 32);
    }
    if (active) {
      Element<C.y>* y = row_of<Element<C.y>>(p.y, index);
      row.each([&](int i, int column, Values& v) {
        if constexpr (C.add) store_vector(row_of<Element<C.residual>>(p.sum, index) + column, from_floats<Element<C.residual>>(v));
        Values w, b;
        if constexpr (C.weights != Along::none) weight.get(i, column, w);
        if constexpr (C.biases != Along::none) bias.get(i, column, b);
#pragma unroll
        for (int k = 0; k < C.width; ++k) {
          v[k] = C.kind == Kind::layer ? (v[k] - mean) * scale : v[k] * scale;
          if constexpr (C.weights != Along::none) v[k] *= C.kind == Kind::layer ? w[k] : w[k] + p.weight_offset;
          if constexpr (C.biases != Along::none) v[k] += b[k];
        }
        store_vector(y + column, from_floats<Element<C.y>>(v));
      });
    }
    end_of_row<C.lanes>();
  }
};

}  // namespace cermet::norm
