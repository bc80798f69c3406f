// What a launch that exchanges data has of its group.
#pragma once

#include "kernel/communicator.hpp"
#include "kernel/cuda/peer_memory.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

struct GroupMemory {
  peer::Link link{};
  int channels = 1;

  /// `what` names the launch. On a device that computes nothing there is no group: addresses are null then. Throws
  /// Error(unsupported) where a group's GPUs do not address each other's memory.
  GroupMemory(const LaunchArgs& args, std::string_view what, int ranks) {
    PeerMemory* const memory = args.communicator ? args.communicator->peer_memory() : nullptr;
    if (memory) {
      link = memory->link(what);
      channels = memory->channels();
      return;
    }
    if (args.queue->device().computes())
      fail(Status::unsupported, "{}: expected a group of GPUs that address each other's memory", what);
    link.ranks = ranks;
  }
};

}  // namespace cermet::cuda
