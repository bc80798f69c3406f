// The compiler and linker that the plugin offers.
#pragma once

#include <memory>

#include "device/cuda/toolchain.hpp"

namespace cermet::cuda {

std::unique_ptr<Toolchain> make_toolchain();

}  // namespace cermet::cuda
