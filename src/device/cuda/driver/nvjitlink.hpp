// nvJitLink behind Toolchain::link.
#pragma once

#include "device/cuda/toolchain.hpp"

namespace cermet::cuda {

/// Links pieces of LTO-IR to a cubin; the pieces are optimized together.
CompileResult link_lto(std::span<const std::vector<std::byte>> pieces, std::span<const std::string> options);

}  // namespace cermet::cuda
