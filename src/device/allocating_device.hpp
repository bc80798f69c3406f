// A device whose memory the caller allocates.
#pragma once

#include "device/device.hpp"

namespace cermet {

/// Functions of the caller. `allocate` returns memory of the device, aligned to 64 bytes, or null where it has none;
/// `release` gets what it returned, from any thread. Both may be called until the last buffer is gone.
struct DeviceAllocator {
  void* (*allocate)(std::size_t bytes, void* user) = nullptr;
  void (*release)(void* memory, std::size_t bytes, void* user) = nullptr;
  void* user = nullptr;
};

/// `device`, which must outlive the result, with allocate() by these functions; all else is the device's.
std::unique_ptr<Device> make_allocating_device(Device& device, const DeviceAllocator& allocator);

}  // namespace cermet
