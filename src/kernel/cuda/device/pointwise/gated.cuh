// Gated activations: y = activation(gate) * up over the two halves of each row.
#pragma once

#include "kernel/cuda/device/pointwise/activations.cuh"
#include "kernel/cuda/device/pointwise/gated.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::gated {

struct Config {
  Function function = Function::silu;
  Layout layout;
  DType x = DType::f32, y = DType::f32;
  int width = 8;
};

template <Config C>
struct Task {
  using Params = gated::Params;
  using X = Element<C.x>;
  using Y = Element<C.y>;

  static __device__ void run(const Params& p, uint32_t item, char*) {
    const TilePlace<C.width> place(p.shape, item);
    if (place.count == 0) return;
    const X* x = row_of<const X>(p.x, place.index);  // [2 * length]
    float first[C.width], second[C.width];
    if constexpr (C.layout.interleaved) {
      const X* pairs = x + 2 * place.column;
      const int lower = min_of(2 * place.count, C.width), upper = 2 * place.count - lower;
      const Vector<X, C.width> low = load_tile<C.width>(pairs, lower, place.vector), high = load_tile<C.width>(pairs + C.width, upper, place.vector);
#pragma unroll
      for (int k = 0; k < C.width; ++k) {
        first[k] = to_float(k < C.width / 2 ? low[2 * k % C.width] : high[2 * k % C.width]);
        second[k] = to_float(k < C.width / 2 ? low[(2 * k + 1) % C.width] : high[(2 * k + 1) % C.width]);
      }
    } else {
      const Vector<X, C.width> a = load_tile<C.width>(x + place.column, place.count, place.vector);
      const Vector<X, C.width> b = load_tile<C.width>(x + p.shape.length + place.column, place.count, place.vector);
      to_floats(a, first);
      to_floats(b, second);
    }
    const Limits limits{p.alpha, p.limit, p.up_offset};
    float y[C.width];
#pragma unroll
    for (int k = 0; k < C.width; ++k) y[k] = apply<C.function>(C.layout.gate_first ? first[k] : second[k], C.layout.gate_first ? second[k] : first[k], limits);
    store_tile(p.y, place, from_floats<Y>(y));
  }
};

}  // namespace cermet::gated
