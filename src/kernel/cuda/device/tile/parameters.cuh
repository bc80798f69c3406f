// Parameters on their way to the SM.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// Loads a launch's parameters into the constant cache, a word of each line, so that their first use later does not
/// wait. Offset and Bytes say which part.
template <int Offset, int Bytes, class Params>
CERMET_DEVICE void touch_parameters(const Params& params) {
  constexpr int line_words = 16, first = Offset / 4, last = (Offset + Bytes) / 4;
  static_assert(Bytes > 0 && Offset + Bytes <= static_cast<int>(sizeof(Params)));
#pragma unroll
  for (int i = first; i < last; i += line_words) asm volatile("" ::"r"(reinterpret_cast<const uint32_t*>(&params)[i]));
  asm volatile("" ::"r"(reinterpret_cast<const uint32_t*>(&params)[last - 1]));
}

}  // namespace cermet
