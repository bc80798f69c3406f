// Gated activations of one gate and one linear element.
#pragma once

#include "kernel/cuda/device/pointwise/math.cuh"

namespace cermet::gated {

enum class Function : uint8_t { silu, gelu, gelu_tanh, gelu_quick, clamped };

/// How the two halves of a row lie.
struct Layout {
  bool gate_first = true, interleaved = false;
};

struct Limits {
  float alpha, limit, up_offset;
};

/// x / (1 + e^-x), with the reciprocal of the hardware (one unit in the last place), which the operators' bounds allow.
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0 ? e : 1.0f) * reciprocal(1.0f + e);
}

template <Function F>
__device__ __forceinline__ float apply(float gate, float up, const Limits& limits) {
  if constexpr (F == Function::silu) return gate * sigmoid(gate) * up;
  else if constexpr (F == Function::gelu) return gate * normal_cdf(gate).v * up;
  else if constexpr (F == Function::gelu_tanh) return gate * sigmoid(2.0f * gelu_tanh_argument(gate).v) * up;
  else if constexpr (F == Function::gelu_quick) return gate * sigmoid(1.702f * gate) * up;
  const Real limit = limits.limit;
  const float g = minimum(gate, limit).v, u = minimum(maximum(up, -limit), limit).v;
  return g * sigmoid(limits.alpha * g) * (u + limits.up_offset);
}

}  // namespace cermet::gated
