// The sums over the reduction of b's columns, which zero points of a need: one pass over b before the product, in place
// of more work at every step of it.
#pragma once

#include "kernel/cuda/device/gemm/column_sums.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemm {

struct ColumnSums {
  using Params = ColumnSumsParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int lane = static_cast<int>(lane_index()),
              n = static_cast<int>(item) * column_sums_item + static_cast<int>(team.warp());
    if (n >= p.n) return;
    const int8_t* const row = p.b + n * p.b_row;
    int32_t sum = 0;
    if (reinterpret_cast<uintptr_t>(row) % 16 == 0) {
      for (int k = lane * 16; k + 16 <= p.k; k += 32 * 16) {
        const auto values = *reinterpret_cast<const Vector<int32_t, 4>*>(row + k);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum = __dp4a(values[i], 0x01010101, sum);
      }
      if (const int k = p.k / 16 * 16 + lane; k < p.k) sum += row[k];
    } else {
      for (int k = lane; k < p.k; k += 32) sum += row[k];
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) p.sums[n] = sum;
  }
};

}  // namespace cermet::gemm
