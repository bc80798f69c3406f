// How the L2 keeps what an access brings (sm_80 on).
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Last to go.
CERMET_DEVICE uint64_t evict_last_policy() {
  uint64_t policy = 0;
#if CERMET_ARCH >= 800
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

/// 16 bytes, aligned to them; before sm_80 the policy is ignored.
CERMET_DEVICE void load_16(const void* from, [[maybe_unused]] uint64_t policy, uint32_t (&words)[4]) {
#if CERMET_ARCH >= 800
  asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from), "l"(policy));
#else
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from));
#endif
}

}  // namespace cermet::ptx
