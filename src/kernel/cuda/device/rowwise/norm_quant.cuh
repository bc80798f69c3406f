// rms_norm_quant and add_rms_norm_quant: a row normalised in float32 that leaves as codes. One work item is a block's rows.
#pragma once

#include "kernel/cuda/device/rowwise/norm.cuh"
#include "kernel/cuda/device/rowwise/norm_quant.hpp"
#include "kernel/cuda/device/rowwise/quantize_row.cuh"

namespace cermet::norm_quant {

struct Config {
  int columns = 0, lanes = 256, threads = 256, width = 1;
  bool add = false;
  DType x = DType::f32, residual = DType::f32;
  Along weights = Along::none, smooths = Along::none;
  DType weight = DType::f32, smooth = DType::f32;
  Quantization out;
};

template <Config C>
struct Task {
  using Params = norm_quant::Params;
  using Map = RowMap<C.columns, C.lanes, C.width>;
  using Values = float[C.width];

  static __device__ void prefetch(const Params& p, uint32_t) {
    if constexpr (C.weights == Along::each && Map::held) {
      const Map map(p.length);
#pragma unroll
      for (int i = 0; i < Map::vectors; ++i)
        if (map.inside(i)) prefetch_l2(static_cast<const Element<C.weight>*>(p.weight) + map.column(i));
    }
  }

  static __device__ __forceinline__ auto source_row(const Params& p, const Map& map, const RowIndex& index) {
    const Element<C.x>* x = row_of<const Element<C.x>>(p.x, index);
    if constexpr (C.add)
      return make_row(map, SumSource<Element<C.x>, Element<C.residual>, C.width, false>{x, row_of<const Element<C.residual>>(p.residual, index)});
    else return make_row(map, PlainSource<Element<C.x>, C.width>{x});
  }

  template <class Row>
  static __device__ __forceinline__ void store_sum(const Params& p, Row& row, const RowIndex& index) {
    Element<C.residual>* sum = row_of<Element<C.residual>>(p.sum, index);
    row.each([&](int, int column, const Values& v) { store_vector(sum + column, from_floats<Element<C.residual>>(v)); });
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    constexpr uint32_t rows_per_block = C.threads / C.lanes;
    float* scratch = reinterpret_cast<float*>(smem);  // [32], then [64] words of the quantization
    const uint32_t number = item * rows_per_block + threadIdx.x / C.lanes;
    const bool active = rows_per_block == 1 || number < p.rows;
    const RowIndex index = row_index(p.dims, active ? number : p.rows - 1);  // surplus lanes take part in the reductions of their warp
    const Map map(p.length);
    auto row = source_row(p, map, index);
    const AlongRow<C.weights, Element<C.weight>, Map> weight(map, p.weight);
    const AlongRow<C.smooths, Element<C.smooth>, Map> smooth(map, p.smooth);
    if constexpr (C.add && Map::held)
      if (active) store_sum(p, row, index);
    const float scale = norm::rms_scale<C.lanes>(row, map.length, p.eps, scratch), weight_offset = p.weight_offset;
    auto&& normalised = row.then([weight, smooth, scale, weight_offset](int i, int column, Values& v) {
      Values w, s;
      if constexpr (C.weights != Along::none) weight.get(i, column, w);
      if constexpr (C.smooths != Along::none) smooth.get(i, column, s);
#pragma unroll
      for (int k = 0; k < C.width; ++k) {
        v[k] *= scale;
        if constexpr (C.weights != Along::none) v[k] *= w[k] + weight_offset;
        if constexpr (C.smooths != Along::none) v[k] *= s[k];
      }
    });
    quantize_row<C.out, C.lanes>(normalised, map, p.out, index, active, reinterpret_cast<uint32_t*>(scratch + 32));
    if constexpr (C.add && !Map::held) {  // last, because it may overwrite the residual, which was read again until here
      __syncthreads();
      auto again = source_row(p, map, index);
      store_sum(p, again, index);
    }
    end_of_row<C.lanes>();
  }
};

}  // namespace cermet::norm_quant
