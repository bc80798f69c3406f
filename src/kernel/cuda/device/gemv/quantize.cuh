// A row in registers quantized to int8 with one scale, operation by operation as the row kernels do it.
#pragma once

#include "kernel/cuda/device/gemv/vectors.cuh"
#include "kernel/cuda/device/rowwise/codes.cuh"

namespace cermet::gemv {

template <int Held>
using Numbers = float[Held][16];

/// The largest magnitude of this lane's numbers; NaN where any is.
template <int Held>
__device__ __forceinline__ float magnitude(const Numbers<Held>& v) {
  float largest = 0;
#pragma unroll
  for (int j = 0; j < Held; ++j)
#pragma unroll
    for (int i = 0; i < 16; ++i) largest = max_or_nan(largest, fabsf(v[j][i]));
  return fabsf(largest);
}

/// The quantized values of a row whose largest magnitude is given; returns their scale. Exact: as dynamic_quant rounds, otherwise as norms that quantize.
template <CodeFormat F, bool Exact, int Held>
__device__ __forceinline__ float quantize(Numbers<Held>& v, float largest, Piece (&codes)[Held]) {
  const CodeScale scale = code_scale<F>({largest, 0});
  const Quantizer<F, Exact> quantizer(scale);
#pragma unroll
  for (int j = 0; j < Held; ++j) quantizer.make_ordinary(v[j]);
#pragma unroll
  for (int j = 0; j < Held; ++j) codes[j] = __builtin_bit_cast(Piece, quantizer.template scaled_codes<true>(v[j]));
  return scale.scale;
}

}  // namespace cermet::gemv
