// The activation functions of op/activation.inc for float32.
#pragma once

#include "kernel/cuda/device/pointwise/math.cuh"

namespace cermet {

enum class Activation : uint8_t {
#define ACTIVATION(name, expression) name,
#include "op/activation.inc"
#undef ACTIVATION
};

template <Activation Function>
CERMET_DEVICE float activate(float value) {
  const Real x = value;
#define ACTIVATION(name, expression) \
  if constexpr (Function == Activation::name) return Real(expression).v;
#include "op/activation.inc"
#undef ACTIVATION
}

}  // namespace cermet
