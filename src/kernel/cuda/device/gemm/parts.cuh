// A float32 matrix as the sum of three bfloat16 matrices: 24 significant bits are three times 8, so a product with
// bfloat16 weights on the tensor cores, which multiply bfloat16 exactly and add in float32, loses nothing of x.
// Infinities and NaN are in the first part alone.
#pragma once

#include "kernel/cuda/device/gemm/parts.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::gemm {

struct Parts {
  using Params = PartsParams;

  static CERMET_DEVICE void split(float x, bf16 (&part)[3]) {
    float residual = x;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const uint32_t high = __float_as_uint(residual) & 0xffff0000u;  // towards zero, so that nothing overflows
      part[i].bits = static_cast<uint16_t>(high >> 16);
      residual -= __uint_as_float(high);
    }
    if ((__float_as_uint(x) & 0x7f800000u) == 0x7f800000u) {
      part[0].bits = x != x ? uint16_t{0x7fff} : part[0].bits;
      part[1].bits = part[2].bits = 0;
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t at = static_cast<int64_t>(item) * parts_item + static_cast<int64_t>(team.rank()) * 8,
                  size = static_cast<int64_t>(p.rows) * p.columns;
    if (at >= size) return;
    const int64_t row = at / p.columns, column = at - row * p.columns;
    const auto* const from =
        reinterpret_cast<const Vector<float, 4>*>(static_cast<const float*>(p.x) + row * p.x_stride + column);
    const Vector<float, 4> low = from[0], high = from[1];
    Vector<bf16, 8> parts[3];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      bf16 part[3];
      split(i < 4 ? low[i % 4] : high[i % 4], part);
#pragma unroll
      for (int j = 0; j < 3; ++j) parts[j][i] = part[j];
    }
#pragma unroll
    for (int j = 0; j < 3; ++j)
      *reinterpret_cast<Vector<bf16, 8>*>(static_cast<bf16*>(p.parts) + j * size + at) = parts[j];
  }
};

}  // namespace cermet::gemm
