// Memory that GPUs of one host share.
#pragma once

#include "device/device.hpp"
#include "device/peer_memory.hpp"

namespace cermet::cuda {

GpuIdentity identify(const Device& device);
/// Of memory that `device` allocated and that outlives what others open. Throws Error where the driver shares none, as
/// in some containers.
SharedMemoryHandle share_memory(Device& device, const DeviceBuffer& memory);
/// Another process's memory, of this GPU or one that it reaches; closed with the last copy of the result. Throws
/// Error(unsupported) where it does not reach it.
DeviceBuffer open_memory(Device& device, const SharedMemoryHandle& handle, std::int64_t bytes);
/// Lets kernels of `device` address what this process allocates on GPU `index`. Throws Error(unsupported) where no link
/// leads there.
void reach_device(Device& device, int index);

}  // namespace cermet::cuda
