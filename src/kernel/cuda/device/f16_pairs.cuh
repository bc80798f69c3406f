// 8-bit elements as pairs of float16, exactly.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// Four elements as two registers of f16 pairs, exactly.
CERMET_DEVICE void to_f16_pairs(uint32_t packed, uint32_t& low, uint32_t& high, f8_e4m3) {
#if CERMET_ARCH >= 890
  asm("{\n .reg .b16 a, b;\n mov.b32 {a, b}, %2;\n cvt.rn.f16x2.e4m3x2 %0, a;\n cvt.rn.f16x2.e4m3x2 %1, b;\n}"
      : "=r"(low), "=r"(high)
      : "r"(packed));
#else
  const auto half = [](uint32_t byte) -> uint32_t {
    return from_float<f16>(to_float(f8_e4m3{static_cast<uint8_t>(byte)})).bits;
  };
  low = half(packed) | half(packed >> 8) << 16;
  high = half(packed >> 16) | half(packed >> 24) << 16;
#endif
}
CERMET_DEVICE void to_f16_pairs(uint32_t packed, uint32_t& low, uint32_t& high, f8_e5m2) {
  low = __byte_perm(packed, 0, 0x1404);  // each byte is the upper half of an f16
  high = __byte_perm(packed, 0, 0x3424);
}
CERMET_DEVICE void to_f16_pairs(uint32_t packed, uint32_t& low, uint32_t& high, int8_t) {
  constexpr uint32_t thousand = 0x64646464;  // upper halves of 1024 + x, where x is below 256
  const uint32_t raised = packed ^ 0x80808080u;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(low) : "r"(__byte_perm(raised, thousand, 0x4140)), "r"(0x64806480u));
  asm("sub.f16x2 %0, %1, %2;" : "=r"(high) : "r"(__byte_perm(raised, thousand, 0x4342)), "r"(0x64806480u));
}

}  // namespace cermet
