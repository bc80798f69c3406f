// A mailbox between items of a launch, without a counter: empty words hold a NaN that arithmetic does not give, so that
// a word is present when it is anything else. A walk (walk.cuh) gives such memory to tasks that want it.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// Of a launch: what this run uses, and what the next one will. Both are empty before the run; a task clears the
/// second one, which no other task touches, so that runs can take them in turn.
struct Meeting {
  char *now, *next;
  bool together;  ///< whether each item of the launch has a block of its own, so that items may wait for each other,
                  ///< whatever their numbers
};

namespace meeting {

/// A NaN that no arithmetic gives.
inline constexpr uint32_t absent = 0xffffffffu;

CERMET_DEVICE uint32_t present(float x) {
  const uint32_t bits = __float_as_uint(x);
  return bits == absent ? 0x7fffffffu : bits;
}
CERMET_DEVICE bool is_there(float x) { return __float_as_uint(x) != absent; }

CERMET_DEVICE void leave(float* to, float x) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(present(x)) : "memory");
}
CERMET_DEVICE void leave(float* to, const float (&x)[4]) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(present(x[0])), "r"(present(x[1])),
               "r"(present(x[2])), "r"(present(x[3]))
               : "memory");
}

/// What is there now.
CERMET_DEVICE float look(const float* from) {
  float x;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
  return x;
}
CERMET_DEVICE void look(const float* from, float (&x)[4]) {
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "l"(from)
               : "memory");
}

/// Takes back what was left; `bytes` is a multiple of 16, as is the address. Each of `threads` threads calls.
CERMET_DEVICE void clear(char* from, int bytes, int thread, int threads) {
  for (int i = thread * 16; i < bytes; i += threads * 16)
    *reinterpret_cast<Vector<uint32_t, 4>*>(from + i) = {absent, absent, absent, absent};
}

}  // namespace meeting
}  // namespace cermet
