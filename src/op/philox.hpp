// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011). The same counter and key give the same bits on every backend. Readable by host and device compilers.
#pragma once

#include "format/half.hpp"

#if defined(__CUDACC_RTC__)
using cermet_u64 = unsigned long long;
#else
using cermet_u64 = std::uint64_t;
#endif

namespace cermet {

struct Philox4 {
  cermet_u32 word[4];
};

/// 128 random bits of a counter under a key.
CERMET_HOST_DEVICE inline Philox4 philox(Philox4 counter, cermet_u32 key0, cermet_u32 key1) {
  for (int round = 0; round < 10; ++round) {
    const cermet_u64 a = static_cast<cermet_u64>(0xd2511f53u) * counter.word[0],
                     b = static_cast<cermet_u64>(0xcd9e8d57u) * counter.word[2];
    counter = {{static_cast<cermet_u32>(b >> 32) ^ counter.word[1] ^ key0, static_cast<cermet_u32>(b),
                static_cast<cermet_u32>(a >> 32) ^ counter.word[3] ^ key1, static_cast<cermet_u32>(a)}};
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return counter;
}

/// 64 random bits: draw number `step` of the stream that `seed` names.
CERMET_HOST_DEVICE inline cermet_u64 random_bits(cermet_u64 seed, cermet_u64 step) {
  const Philox4 bits = philox({{static_cast<cermet_u32>(step), static_cast<cermet_u32>(step >> 32), 0, 0}},
                              static_cast<cermet_u32>(seed), static_cast<cermet_u32>(seed >> 32));
  return bits.word[0] | static_cast<cermet_u64>(bits.word[1]) << 32;
}

}  // namespace cermet
