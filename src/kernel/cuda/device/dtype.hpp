// The element type, for configurations that host and device share.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {
enum class DType : uint8_t;  // base/dtype.hpp on the host, types.cuh on the device
}
