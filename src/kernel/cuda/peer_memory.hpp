// Memory that GPUs of a group share, for kernels that exchange data within a launch.
#pragma once

#include <string_view>

#include "kernel/cuda/device/peer/link.hpp"

namespace cermet::cuda {

class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  /// What a launch needs to exchange data; `what` names it where a rank does not arrive. Holds as long as the group.
  virtual peer::Link link(std::string_view what) = 0;
  /// Thread blocks that may exchange data at the same time, at most: all are resident on every rank.
  virtual int channels() const = 0;
  /// How many ranks this one's device has: kernels of blocks that all must be resident share its SMs out.
  virtual int ranks_on_device() const = 0;
  /// Seconds that a launch waits for another rank's.
  virtual double timeout() const = 0;
  /// Before and after launches that exchange data are enqueued: waits on the host for all ranks where some share a
  /// device, and does nothing otherwise. What a driver does for one of them (loading code, freeing memory) may wait for
  /// what runs on their device, which then must not wait for a launch to come.
  virtual void line_up() = 0;
};

}  // namespace cermet::cuda
