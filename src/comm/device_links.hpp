// What carries data between the GPUs of a group: NCCL, memory that all address, or both.
#pragma once

#include "comm/device_communicator.hpp"
#include "comm/peer_group.hpp"
#include "device/device_group.hpp"

namespace cermet::comm {

/// One of them at least.
struct Links {
  std::unique_ptr<DeviceGroup> nccl;
  std::unique_ptr<PeerGroup> peer;
};

/// Every rank calls it, and gets the same ones, because all know what any of them found. Throws Error(unsupported) on
/// every rank, with the reason, where the engine cannot be.
Links joined_by(Communicator& host, Device& device, DeviceEngine engine);

}  // namespace cermet::comm
