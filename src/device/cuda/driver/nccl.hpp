// NCCL, opened by name at the first call.
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"
#include "device/device_group.hpp"

namespace cermet::cuda {

/// Why NCCL cannot be called; empty where it can.
std::string nccl_problem();
GroupIdentity make_group_identity();
/// Blocks until all ranks have called it, or NCCL gives up.
std::unique_ptr<DeviceGroup> join_device_group(Device& device, int rank, int size, const GroupIdentity& identity);

}  // namespace cermet::cuda
