// A region of elementwise operators over a tile: the functions of a place are generated.
#pragma once

#include "kernel/cuda/device/pointwise/functions.cuh"
#include "kernel/cuda/device/pointwise/region_task.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::pointwise {

/// Body, generated:
///   template <int Width> struct Raw                                       what a thread loads for a vector of each
///   operand template <class Place> Raw<Place::width> load(operands, place) template <class Place> void store(operands,
///   place, raw)               computes and stores every result
template <class Body, Tiling T, int Width>
struct RegionTask {
  using Params = RegionParams;
  using Place = TilePlace<Width, T>;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    for_tile<Width, T>(
        p.shape, item, team, [&](const Place& place) { return Body::load(p.operands, place); },
        [&](const typename Body::template Raw<Width>& raw, const Place& place) {
          Body::store(p.operands, place, raw);
        });
  }
};

}  // namespace cermet::pointwise
