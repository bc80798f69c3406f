// A region of row reductions and elementwise operators: the passes over a row are generated, from the parts of the
// engine.
#pragma once

#include "kernel/cuda/device/pointwise/activations.cuh"
#include "kernel/cuda/device/pointwise/functions.cuh"
#include "kernel/cuda/device/ptx/cache_policy.cuh"
#include "kernel/cuda/device/rowwise/quantize_row.cuh"
#include "kernel/cuda/device/rowwise/row_region_task.hpp"
#include "kernel/cuda/device/rowwise/sources.cuh"
#include "kernel/cuda/device/rowwise/statistics.cuh"

namespace cermet::row_region {

/// Body, generated: `template <RowShape, class Team> run(params, item, smem)`; of the parameters it reads what Params
/// has, which others may give, too.
template <class Body, RowShape S>
struct Task {
  using Params = row_region::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    Body::template run<S, Team>(p, item, smem);
  }
};

/// A vector of an operand whose memory is overwritten by the same thread: of many rows, the L2 should keep it until
/// then (after that it is like any other).
template <RowShape S, class T>
CERMET_DEVICE Vector<T, S.width> load_overwritten(const T* from) {
  if constexpr (S.columns > 0 && !S.uniform && sizeof(Vector<T, S.width>) == 16) {
    Words<4> words;
    ptx::load_16(from, ptx::evict_last_policy(), words.at);
    return __builtin_bit_cast(Vector<T, S.width>, words);
  } else {
    return load_vector<S.width>(from);
  }
}

/// Neighbouring pairs of elements, of which each is one of a row.
template <class T, int Width>
struct PairsOfElements {
  Vector<T, Width> first, second;
  CERMET_DEVICE T at(int i) const { return i < Width ? first[i % Width] : second[i % Width]; }
};
template <int Width, class T>
CERMET_DEVICE PairsOfElements<T, Width> load_pairs(const T* from) {
  return {load_vector<Width>(from), load_vector<Width>(from + Width)};
}

/// One number for all columns of a row, or for all rows: `T` at the start of the row.
template <class T, class Place>
CERMET_DEVICE float number_of(const RowOperand& operand, const Place& place) {
  return to_float(*place.template of<const T>(operand));
}

}  // namespace cermet::row_region
