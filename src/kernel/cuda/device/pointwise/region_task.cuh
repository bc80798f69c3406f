// A region of elementwise operators over a tile: the functions of a vector are generated.
#pragma once

#include "kernel/cuda/device/pointwise/functions.cuh"
#include "kernel/cuda/device/pointwise/region_task.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::pointwise {

/// Body, generated:
/// - Raw<Width>: what a thread loads of every operand for a vector of results
/// - load(operands, coord): loads it
/// - store(operands, coord, raw): computes and stores every result
template <class Body, Tiling T, int Width>
struct RegionTask {
  using Params = RegionParams;
  using Coord = VectorCoord<Width, T>;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    for_tile<Width, T>(
        p.shape, item, team, [&](const Coord& coord) { return Body::load(p.operands, coord); },
        [&](const typename Body::template Raw<Width>& raw, const Coord& coord) {
          Body::store(p.operands, coord, raw);
        });
  }
};

}  // namespace cermet::pointwise
