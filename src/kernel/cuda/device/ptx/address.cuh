// Addresses in the shared window, as instructions on shared memory take them.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::ptx {

CERMET_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace cermet::ptx
