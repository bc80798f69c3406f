// A region of row reductions and elementwise operators: the passes over a row are generated, from the parts of the engine.
#pragma once

#include "kernel/cuda/device/pointwise/functions.cuh"
#include "kernel/cuda/device/rowwise/norm.cuh"
#include "kernel/cuda/device/rowwise/quantize_row.cuh"
#include "kernel/cuda/device/rowwise/region.hpp"
#include "kernel/cuda/device/rowwise/sources.cuh"

namespace cermet::row_region {

/// Body, generated: `template <RowShape, class Team> run(params, item, smem)`.
template <class Body, RowShape S>
struct Task {
  using Params = row_region::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    Body::template run<S, Team>(p, item, smem);
  }
};

/// One number for all columns of a row, or for all rows: `T` at the start of the row.
template <class T, class Place>
__device__ __forceinline__ float number_of(const RowOperand& operand, const Place& place) {
  return to_float(*place.template of<const T>(operand));
}

}  // namespace cermet::row_region
