// Ranks that are GPUs, joined by NCCL, which the CUDA plugin opens by name.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "kernel/communicator.hpp"

namespace cermet::comm {

/// Engine "nccl": the same ranks as `host`, each with its own `device`, which both must outlive the result. Every rank calls it. `host` carries the
/// identity that NCCL needs to join the ranks, texts and barriers, and shows which of them are gone. On a device that computes nothing: engine "null".
/// Calls are enqueued and may be captured in a graph: then a graph's launches are calls, too, so that all ranks replay the same ones.
/// Throws Error(unsupported) with the loader's reason where there is no NCCL.
std::unique_ptr<Communicator> make_device_communicator(Communicator& host, Device& device);

/// Rank `rank` of `size` on a device that computes nothing: calls are checked and do nothing.
std::unique_ptr<Communicator> make_null_communicator(int rank, int size);

}  // namespace cermet::comm
