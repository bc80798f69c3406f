// How updates meet what is there.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::scatter {

enum class Reduction : uint8_t { none, sum, prod, max, min };

}  // namespace cermet::scatter
