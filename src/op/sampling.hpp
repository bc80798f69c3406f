// Arithmetic of sampling that every backend repeats bit for bit: weights are integers, so their sums do not depend on
// an order, and they come from float32 operations that are each rounded to nearest, never fused. Readable by host and
// device compilers.
#pragma once

#include "op/float_order.hpp"
#include "op/philox.hpp"

namespace cermet {

// A compiler may fuse a * b + c on its own: the project's build forbids it on the host, intrinsics do on a device.
#if defined(__CUDA_ARCH__)
__device__ inline float rounded_mul(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float rounded_add(float a, float b) { return __fadd_rn(a, b); }
#else
inline float rounded_mul(float a, float b) { return a * b; }
inline float rounded_add(float a, float b) { return a + b; }
#endif

/// e^x for -28 <= x <= 0, within 2 units in the last place; 0 below. Cody-Waite reduction by ln 2 in two parts, then
/// the Taylor polynomial of degree 7.
CERMET_HOST_DEVICE inline float sampling_exp(float x) {
  if (!(x >= -28.0f)) return 0.0f;
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = rounded_add(rounded_add(rounded_mul(x, 1.44269504f), magic), -magic);
  float r = rounded_add(x, rounded_mul(n, -0.693359375f));
  r = rounded_add(r, rounded_mul(n, 2.12194440e-4f));
  constexpr float coefficients[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  float p = 1.0f / 5040;
  for (int i = 0; i < 7; ++i) p = rounded_add(rounded_mul(p, r), coefficients[i]);
  return format::float_from_bits(format::float_bits(p) + (static_cast<cermet_u32>(static_cast<int>(n)) << 23));
}

/// Weight of a token from e^(its scaled logit - the largest), in steps of 2^-40. Up to 2^23 of them add up without
/// overflow.
CERMET_HOST_DEVICE inline cermet_u64 sampling_weight(float exponential) {
  return static_cast<cermet_u64>(static_cast<long long>(rounded_mul(exponential, 1099511627776.0f)));
}

/// floor(total * fraction / 2^64) of a random fraction.
CERMET_HOST_DEVICE inline cermet_u64 scale_random(cermet_u64 total, cermet_u64 fraction) {
  const cermet_u64 mask = 0xffffffffu, th = total >> 32, tl = total & mask, fh = fraction >> 32, fl = fraction & mask;
  const cermet_u64 middle = th * fl + (tl * fl >> 32);
  return th * fh + (middle >> 32) + ((tl * fh + (middle & mask)) >> 32);
}

/// Weight that the kept tokens must reach together: floor(total * top_p), for 0 < top_p <= 1 and total < 2^63.
CERMET_HOST_DEVICE inline cermet_u64 top_p_weight(cermet_u64 total, float top_p) {
  const auto p = static_cast<cermet_u64>(static_cast<long long>(rounded_mul(top_p, 4294967296.0f)));
  return (total >> 32) * p + ((total & 0xffffffffu) * p >> 32);
}

/// A logit after the repetition penalty.
CERMET_HOST_DEVICE inline float penalized(float logit, float penalty) {
  return logit > 0 ? logit / penalty : rounded_mul(logit, penalty);
}

/// Tokens sort by descending scaled logit, then by ascending id: a larger rank comes first.
CERMET_HOST_DEVICE inline cermet_u64 sampling_rank(float scaled_logit, cermet_u32 id) {
  return static_cast<cermet_u64>(order_key(scaled_logit)) << 32 | (0xffffffffu - id);
}

}  // namespace cermet
