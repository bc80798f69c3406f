// Sums and maxima over a warp or a team. Fixed order: the same configuration gives the same bits.
#pragma once

#include "kernel/cuda/device/team.cuh"

namespace cermet {

struct Sum {
  static CERMET_DEVICE float identity() { return 0.0f; }
  static CERMET_DEVICE float combine(float a, float b) { return a + b; }
};
/// NaN where any operand is.
struct Maximum {
  static CERMET_DEVICE float identity() { return -infinity(); }
  static CERMET_DEVICE float combine(float a, float b) { return a > b || a != a ? a : b; }
};

/// Largest of numbers that are not negative; NaN where any is. Their bits have the order of unsigned integers, NaN
/// above all.
struct Magnitude {
  static CERMET_DEVICE float identity() { return 0.0f; }
  static CERMET_DEVICE float combine(float a, float b) {
    return __uint_as_float(max_of(__float_as_uint(a), __float_as_uint(b)));
  }
};

/// Every lane gets the result over `Width` neighbouring lanes.
template <class Reduction, int Width = 32>
CERMET_DEVICE float warp_reduce(float x) {
#pragma unroll
  for (int offset = Width / 2; offset > 0; offset /= 2)
    x = Reduction::combine(x, __shfl_xor_sync(0xffffffffu, x, offset, 32));
  return x;
}

/// Every lane gets the result over `Lanes` neighbouring lanes, at most 32.
template <class Reduction, int Lanes>
CERMET_DEVICE float lanes_reduce(float x) {
  return warp_reduce<Reduction, Lanes>(x);
}
#if CERMET_ARCH >= 800
template <>
CERMET_DEVICE float lanes_reduce<Magnitude, 32>(float x) {
  return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(x)));
}
#endif

/// Every thread gets the result over the team. `scratch`: one float for each warp, which no earlier call may still be
/// reading (two calls in a row take two scratch areas, or a barrier between them).
template <class Reduction, class Team>
CERMET_DEVICE float team_reduce(Team team, float x, float* scratch) {
  x = warp_reduce<Reduction>(x);
  if constexpr (Team::warps == 1) return x;
  if (lane_index() == 0) scratch[team.warp()] = x;
  team.sync();
  float y = lane_index() < Team::warps ? scratch[lane_index()] : Reduction::identity();
  y = warp_reduce<Reduction>(y);
  return y;
}

}  // namespace cermet
