// When the launch after a task's may start (sm_90 and later, where launches overlap), and what a task does meanwhile.
#pragma once

#include "kernel/cuda/device/team.cuh"

namespace cermet {

/// Task::overlap.
enum class Overlap : uint8_t {
  early,  ///< at once: it may fetch its weights meanwhile, but so may the launch after it, and whole chains wait on the
          ///< same SMs
  late,   ///< when the launches before the task's have ended, so that one launch waits and no more
  own,    ///< when every block has called start_next_launch(): after it stored what the next launch may read while it
          ///< waits, or once it needs no more SMs for itself
};

/// Task::overlap; early where a task has none.
template <class Task>
__host__ __device__ constexpr Overlap overlap_of() {
  if constexpr (requires { Task::overlap; }) return Task::overlap;
  else return Overlap::early;
}

/// For good: what those stored is there then.
CERMET_DEVICE void wait_for_earlier_launches() {
#if CERMET_ARCH >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// By any thread of a block.
CERMET_DEVICE void start_next_launch() {
#if CERMET_ARCH >= 900
  if constexpr (!in_walk)  // whose next task is no launch
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

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
