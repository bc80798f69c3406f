// Loops whose counter is a constant: each turn is its own code.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// A number that a generic lambda takes as a constant; calls body(Constant<0>), body(Constant<1>), ..
template <int I>
struct Constant {};
template <int Count, int I = 0, class Body>
CERMET_DEVICE void for_constants(Body&& body) {
  if constexpr (I < Count) {
    body(Constant<I>{});
    for_constants<Count, I + 1>(body);
  }
}

}  // namespace cermet
