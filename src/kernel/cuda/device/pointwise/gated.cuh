// Gated activations: y = activation(gate) * up over the two halves of each row.
#pragma once

#include "kernel/cuda/device/pointwise/activations.cuh"
#include "kernel/cuda/device/pointwise/gated.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::gated {

template <Config C>
struct Task {
  using Params = gated::Params;
  using X = Element<C.x>;
  using Y = Element<C.y>;
  static constexpr Overlap overlap = Overlap::late;

  struct Raw {
    Vector<X, C.width> first, second;  ///< of the halves, or of interleaved pairs
  };

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using Coord = VectorCoord<C.width, C.tiling>;
    for_tile<C.width, C.tiling>(
        p.shape, item, team, [&](const Coord& coord) { return load(p, coord); },
        [&](const Raw& raw, const Coord& coord) {
          float first[C.width], second[C.width], y[C.width];
          if constexpr (C.layout.interleaved) {
#pragma unroll
            for (int k = 0; k < C.width; ++k) {
              first[k] = to_float(2 * k < C.width ? raw.first[2 * k % C.width] : raw.second[2 * k % C.width]);
              second[k] =
                  to_float(2 * k + 1 < C.width ? raw.first[(2 * k + 1) % C.width] : raw.second[(2 * k + 1) % C.width]);
            }
          } else {
            to_floats(raw.first, first);
            to_floats(raw.second, second);
          }
          const Limits limits{p.alpha, p.limit, p.up_offset};
          if constexpr (C.layout.gate_first) apply<C.function>(first, second, limits, y);
          else apply<C.function>(second, first, limits, y);
          store_tile(p.y, coord, from_floats<Y>(y));
        });
  }

  template <class Coord>
  static CERMET_DEVICE Raw load(const Params& p, const Coord& coord) {
    const X* x = coord.template of<const X>(p.x);  // [2 * length]
    if constexpr (!C.layout.interleaved)
      return {load_tile(x, coord.count, coord), load_tile(x + p.shape.length, coord.count, coord)};
    const X* pairs = x + coord.column;
    const int lower = min_of(2 * coord.count, C.width);
    return {load_tile(pairs, lower, coord), load_tile(pairs + C.width, 2 * coord.count - lower, coord)};
  }
};

}  // namespace cermet::gated
