// One pair of a head, rotated: the same bits wherever it is computed.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::rope_and_cache {

/// (a, b) by an angle of this cosine and sine. One product of each sum is rounded by itself, the other together with
/// the sum.
CERMET_DEVICE void rotate_pair(float& a, float& b, float cos, float sin) {
  const float rotated = fmaf(a, cos, -__fmul_rn(b, sin));
  b = fmaf(b, cos, __fmul_rn(a, sin));
  a = rotated;
}

}  // namespace cermet::rope_and_cache
