// matmul of f64 and of integers on CUDA cores, over operands as they lie in memory.
#pragma once

#include "kernel/cuda/device/gemm/plain.hpp"
#include "kernel/cuda/device/movement/axes.cuh"

namespace cermet::plain {

/// T: double, or the unsigned integer of the width, whose arithmetic wraps as that of the signed one does.
template <class T>
struct Task {
  using Params = plain::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t across = item % p.tiles_across, above = item / p.tiles_across;
    const int64_t row = above % p.tiles_down * tile_rows + team.rank() / tile_columns,
                  column = across * tile_columns + team.rank() % tile_columns;
    if (row >= p.rows || column >= p.columns) return;
    int64_t offset[3];
    offsets_at(p.batches, above / p.tiles_down, offset);
    const T* a = static_cast<const T*>(p.a) + offset[0] + row * p.a_row;
    const T* b = static_cast<const T*>(p.b) + offset[1] + column * p.b_column;
    T sum = 0;
#pragma unroll 4
    for (int64_t k = 0; k < p.length; ++k) sum += a[k * p.a_step] * b[k * p.b_step];
    static_cast<T*>(p.y)[offset[2] + row * p.y_row + column] = sum;
  }
};

}  // namespace cermet::plain
