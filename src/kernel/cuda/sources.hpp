// The device headers, embedded in the library.
#pragma once

#include <span>

#include "device/cuda/toolchain.hpp"

namespace cermet::cuda {

/// All headers below kernel/cuda/device, and the tables they include, as the build found them.
std::span<const SourceHeader> embedded_sources();
/// The headers to compile with: the embedded ones, or those of the tree that CERMET_KERNEL_SOURCES names.
std::span<const SourceHeader> device_sources();

}  // namespace cermet::cuda
