// A row in registers quantized to int8 or fp8 with one scale, operation by operation as the row kernels do it.
#pragma once

#include "kernel/cuda/device/gemv/vectors.cuh"
#include "kernel/cuda/device/rowwise/quantized_row.cuh"

namespace cermet::gemv {

template <int Held>
using Numbers = float[Held][16];

/// The largest magnitude of this lane's numbers; NaN where any is.
template <int Held>
CERMET_DEVICE float magnitude(const Numbers<Held>& v) {
  float largest = 0;
#pragma unroll
  for (int j = 0; j < Held; ++j)
#pragma unroll
    for (int i = 0; i < 16; ++i) largest = max_or_nan(largest, fabsf(v[j][i]));
  return fabsf(largest);
}

/// Where the quantized values of 16 numbers go: as they are, or fp8 as numbers again.
template <QuantizedFormat F>
CERMET_DEVICE void put(const Vector<Element<F.dtype>, 16>& codes, Piece& to) {
  to = __builtin_bit_cast(Piece, codes);
}
template <QuantizedFormat F>
CERMET_DEVICE void put(const Vector<Element<F.dtype>, 16>& codes, float (&to)[16]) {
  to_floats<F.dtype>(__builtin_bit_cast(Piece, codes), to);
}

/// The quantized values of a row whose largest magnitude is given; returns their scale. Exact: as dynamic_quant rounds,
/// otherwise as norms that quantize.
template <QuantizedFormat F, bool Exact, int Held, class Codes>
CERMET_DEVICE float quantize(Numbers<Held>& v, float largest, Codes (&codes)[Held]) {
  const QuantizationParams scale = quantization_params<F>({largest, 0});
  const Quantizer<F, Exact> quantizer(scale);
#pragma unroll
  for (int j = 0; j < Held; ++j) quantizer.make_ordinary(v[j]);
#pragma unroll
  for (int j = 0; j < Held; ++j) put<F>(quantizer.template quantize_scaled<true>(v[j]), codes[j]);
  return scale.scale;
}

}  // namespace cermet::gemv
