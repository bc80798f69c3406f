// Accesses to memory that several GPUs and the host address.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Stores after everything that this thread wrote, or saw other threads of its block write before a barrier, wherever
/// it was written to.
CERMET_DEVICE void store_release_system(uint32_t* to, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

/// What is read after is at least as new.
CERMET_DEVICE uint32_t load_acquire_system(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// Two words of 8 bytes, 16-byte aligned. Others see each of them whole or not at all, in no order with anything else.
struct alignas(16) WordPair {
  uint64_t first, second;
};
CERMET_DEVICE void store_words_system(WordPair* to, const WordPair& words) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words.first), "l"(words.second)
               : "memory");
}
CERMET_DEVICE WordPair load_words_system(const WordPair* from) {
  WordPair words;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.first), "=l"(words.second)
               : "l"(from)
               : "memory");
  return words;
}

/// Nanoseconds of a clock that all SMs share.
CERMET_DEVICE uint64_t nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

}  // namespace cermet::ptx
