// A call that blocks until all ranks have made it, with an end where one of them does not.
#pragma once

#include <functional>
#include <memory>

#include "device/device_group.hpp"
#include "kernel/communicator.hpp"

namespace cermet::comm {

/// What `join` returns, which a thread of its own calls: NCCL waits for ranks without looking whether they are there.
/// Throws what it throws, after telling the other ranks; Error(io) where a rank of `host` is gone or `timeout` seconds
/// are over: the thread is left behind then, for the process to end with.
std::unique_ptr<DeviceGroup> join_watched(Communicator& host, std::function<std::unique_ptr<DeviceGroup>()> join,
                                          double timeout);

}  // namespace cermet::comm
