// Gated activations of one gate and one linear element.
#pragma once

#include "kernel/cuda/device/pointwise/gated.hpp"
#include "kernel/cuda/device/pointwise/math.cuh"

namespace cermet::gated {

struct Limits {
  float alpha, limit, up_offset;
};

/// e^-x for x >= -80 (and NaN), off by a few units in the last place.
CERMET_DEVICE float exp_of_negative(float x) {
  constexpr float log2_e = 1.44269502f, log2_e_low = 1.92596303e-8f, ln_2 = 0.693147181f;
  const float power = x * -log2_e;
  const float residual = fmaf(x, -log2_e_low, fmaf(x, -log2_e, -power));  // what the rounding of the power lost
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(power));
  return fmaf(y, residual * ln_2, y);
}

/// Below this e^-x comes near the largest float, and its reciprocal near the smallest.
inline constexpr float far_gate = -80;

/// NaN gives 1: what it is multiplied by is NaN, too.
CERMET_DEVICE float sigmoid(float x) { return reciprocal(1.0f + exp_of_negative(fminf(x, 100.0f))); }
/// For any x: from e^-|x|, so that nothing overflows.
CERMET_DEVICE float far_sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0 ? e : 1.0f) * reciprocal(1.0f + e);
}

/// x = silu(x).
template <int Width>
CERMET_DEVICE void silu(float (&x)[Width]) {
  float least = 0;
#pragma unroll
  for (int k = 0; k < Width; ++k) least = fminf(least, x[k]);
  if (least < far_gate) {
#pragma unroll
    for (int k = 0; k < Width; ++k) x[k] *= far_sigmoid(x[k]);
  } else {
#pragma unroll
    for (int k = 0; k < Width; ++k) x[k] *= sigmoid(x[k]);
  }
}

/// y = activation(gate) * up.
template <Function F, int Width>
CERMET_DEVICE void apply(const float (&gate)[Width], const float (&up)[Width], const Limits& limits,
                         float (&y)[Width]) {
  if constexpr (F == Function::gelu) {
#pragma unroll
    for (int k = 0; k < Width; ++k) y[k] = gate[k] * normal_cdf(gate[k]).v * up[k];
  } else {
    float g[Width], u[Width], argument[Width], least = 0;  // y = g * sigmoid(argument) * u
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      g[k] = F == Function::clamped ? minimum(gate[k], Real(limits.limit)).v : gate[k];
      u[k] = F == Function::clamped
                 ? minimum(maximum(up[k], Real(-limits.limit)), Real(limits.limit)).v + limits.up_offset
                 : up[k];
      argument[k] = F == Function::gelu_tanh    ? 2.0f * gelu_tanh_argument(g[k]).v
                    : F == Function::gelu_quick ? 1.702f * g[k]
                    : F == Function::clamped    ? limits.alpha * g[k]
                                                : g[k];
      least = fminf(least, argument[k]);
    }
    if (least < far_gate) {
#pragma unroll
      for (int k = 0; k < Width; ++k) y[k] = g[k] * far_sigmoid(argument[k]) * u[k];
    } else {
#pragma unroll
      for (int k = 0; k < Width; ++k) y[k] = g[k] * sigmoid(argument[k]) * u[k];
    }
  }
}

}  // namespace cermet::gated
