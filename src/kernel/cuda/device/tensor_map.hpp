// A tensor map (CUtensorMap) as a field of a task's parameters; the host fills it from Device::tensor_map.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {

struct alignas(64) TensorMapBytes {
  uint8_t bytes[128];
};

}  // namespace cermet
