// softmax and its logarithm: the largest element, the sum of exponentials, the result.
#pragma once

#include "kernel/cuda/device/rowwise/reduce_row.cuh"
#include "kernel/cuda/device/rowwise/softmax.hpp"
#include "kernel/cuda/device/rowwise/sources.cuh"

namespace cermet::softmax {

struct Config {
  RowShape shape;
  DType x = DType::f32, y = DType::f32;
  bool logarithm = false;
};

template <Config C>
struct Task {
  using Params = softmax::Params;
  using Values = float[C.shape.width];
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    using Map = RowMap<C.shape, Team>;
    RowReducer<Map> reduce(smem);
    const RowPlace<Map> place(item, p.dims, p.rows);
    const Map map(p.length);
    const PlainSource<Element<C.x>, C.shape.width> source{place.template of<const Element<C.x>>(p.x)};
    RawRow raw(map, source, place.active);
    auto row = make_row(map, source, raw);
    float largest = -infinity();
    row.each([&](int, int, const Values& v) {
#pragma unroll
      for (int k = 0; k < C.shape.width; ++k) largest = Maximum::combine(largest, v[k]);
    });
    row.forget_values();
    largest = reduce.template operator()<Maximum>(largest);
    auto&& shifted = row.then([largest](int, int, Values& v) {
#pragma unroll
      for (int k = 0; k < C.shape.width; ++k) {
        v[k] = v[k] - largest;
        if constexpr (!C.logarithm) v[k] = expf(v[k]);
      }
    });
    float total = 0;
    shifted.each([&](int, int, const Values& v) {
#pragma unroll
      for (int k = 0; k < C.shape.width; ++k) total += C.logarithm ? expf(v[k]) : v[k];
    });
    total = reduce.template operator()<Sum>(total);
    const float factor = 1.0f / total, logarithm = logf(total);
    if (place.active) {
      Element<C.y>* y = place.template of<Element<C.y>>(p.y);
      shifted.each([&](int, int64_t column, Values& v) {
#pragma unroll
        for (int k = 0; k < C.shape.width; ++k) v[k] = C.logarithm ? v[k] - logarithm : v[k] * factor;
        store_vector(y + column, from_floats<Element<C.y>>(v));
      });
    }
    reduce.finish();
  }
};

}  // namespace cermet::softmax
