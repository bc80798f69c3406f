// Memory of a GPU that others of the host address, from this process or another one.
#pragma once

#include <array>
#include <cstdint>

namespace cermet {

/// Which GPU it is, whatever number a process gives it.
struct GpuIdentity {
  std::array<char, 16> uuid{};
  int index = 0;  ///< in this process: "cuda:1"
};

/// Memory as another process opens it (CUDA IPC).
using SharedMemoryHandle = std::array<char, 64>;

}  // namespace cermet
