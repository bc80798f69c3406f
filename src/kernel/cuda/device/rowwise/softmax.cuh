// softmax and its logarithm: the largest element, the sum of exponentials, the result. One work item is a block's rows.
#pragma once

#include "kernel/cuda/device/rowwise/softmax.hpp"
#include "kernel/cuda/device/rowwise/sources.cuh"

namespace cermet::softmax {

struct Config {
  int columns = 0, lanes = 256, threads = 256, width = 1;
  DType x = DType::f32, y = DType::f32;
  bool logarithm = false;
};

template <Config C>
struct Task {
  using Params = softmax::Params;
  using Map = RowMap<C.columns, C.lanes, C.width>;
  using Values = float[C.width];

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    constexpr uint32_t rows_per_block = C.threads / C.lanes;
    float* scratch = reinterpret_cast<float*>(smem);  // [2][32]
    const uint32_t number = item * rows_per_block + threadIdx.x / C.lanes;
    const bool active = rows_per_block == 1 || number < p.rows;
    const RowIndex index = row_index(p.dims, active ? number : p.rows - 1);  // surplus lanes take part in the reductions of their warp
    const Map map(p.length);
    auto row = make_row(map, PlainSource<Element<C.x>, C.width>{row_of<const Element<C.x>>(p.x, index)});
    float largest = -infinity();
    row.each([&](int, int, const Values& v) {
#pragma unroll
      for (int k = 0; k < C.width; ++k) largest = Maximum::combine(largest, v[k]);
    });
    largest = row_reduce<Maximum, C.lanes>(largest, scratch);
    auto&& shifted = row.then([largest](int, int, Values& v) {
#pragma unroll
      for (int k = 0; k < C.width; ++k) {
        v[k] = v[k] - largest;
        if constexpr (!C.logarithm) v[k] = expf(v[k]);
      }
    });
    float total = 0;
    shifted.each([&](int, int, const Values& v) {
#pragma unroll
      for (int k = 0; k < C.width; ++k) total += C.logarithm ? expf(v[k]) : v[k];
    });
    total = row_reduce<Sum, C.lanes>(total, scratch + 32);
    const float factor = 1.0f / total, logarithm = logf(total);
    if (active) {
      Element<C.y>* y = row_of<Element<C.y>>(p.y, index);
      shifted.each([&](int, int column, Values& v) {
#pragma unroll
        for (int k = 0; k < C.width; ++k) v[k] = C.logarithm ? v[k] - logarithm : v[k] * factor;
        store_vector(y + column, from_floats<Element<C.y>>(v));
      });
    }
    end_of_row<C.lanes>();
  }
};

}  // namespace cermet::softmax
