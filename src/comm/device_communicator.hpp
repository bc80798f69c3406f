// Ranks that are GPUs, joined by NCCL, which the CUDA plugin opens by name, by memory that they all address, or by
// both.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.hpp"
#include "kernel/communicator.hpp"

namespace cermet::comm {

/// What carries data between GPUs.
enum class DeviceEngine {
  automatic,  ///< both where they can be, and then each call by what takes it sooner; the one that can be otherwise
  nccl,       ///< the library: every rank has a device of its own
  peer,      ///< memory of each that all address, on one host. Ranks may share a device, which is for checking, not for
             ///< speed
  stamped,   ///< the same, in words that say by themselves that they have come
  one_shot,  ///< the same, and all_reduce sends all to all at once, a flag behind it
  two_shot,  ///< the same, and all_reduce sends shares, then their sums
};
/// "auto", "nccl", "peer", "stamped", "one-shot" or "two-shot"; throws Error naming `what` otherwise.
DeviceEngine device_engine_from(std::string_view name, std::string_view what);

/// Engine "nccl", "peer" or "peer+nccl": the same ranks as `host`, each with its `device`, which both must outlive the
/// result. Every rank calls it. `host` carries what the ranks need to join, texts and barriers, and shows which of them
/// are gone. On a device that computes nothing: engine "null". Calls are enqueued and may be captured in a graph: then
/// a graph's launches are calls, too, so that all ranks replay the same ones. The first call of each kind and type may
/// load a program, which a capture does not allow. Where `engine` is automatic, CERMET_COMM_ROUTE may name another.
/// Throws Error(unsupported) on every rank, with the reason, where the engine cannot be: no NCCL, no way to another
/// rank's memory.
std::unique_ptr<Communicator> make_device_communicator(Communicator& host, Device& device,
                                                       DeviceEngine engine = DeviceEngine::automatic);
/// Whether every rank has a device of its own. Every rank calls it.
bool devices_differ(Communicator& host, Device& device);
/// The device of this host's rank `local_rank` for "cuda" or "cuda:1", from which ranks count on: "cuda:3". Where ranks
/// are more than GPUs, they share them.
std::string device_of_rank(std::string_view device, int local_rank);

/// Rank `rank` of `size` on a device that computes nothing: calls are checked and do nothing.
std::unique_ptr<Communicator> make_null_communicator(int rank, int size);

}  // namespace cermet::comm
