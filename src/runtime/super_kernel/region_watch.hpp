// Ends a process whose super-kernel never does. A walk gives up waits by itself (kernel/cuda/device/walk.cuh), but
// nothing ends a launch whose task runs for ever, and every call that would wait for the device does, too: who may
// still speak is a thread of the host that makes no such call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "kernel/cuda/device/walk.hpp"

namespace cermet {

/// What the thread looks at.
struct WatchedRegion {
  const volatile walk::Stuck* flags = nullptr;  ///< in the host's memory
  const std::byte* progress =
      nullptr;  ///< uint32 [blocks], in the device's: launches that a block has begun, all + 1 after the last
  std::uint32_t blocks = 0;
  std::vector<std::string> names;  ///< of the launches
  double patience = 0;             ///< seconds
};

/// Watches a region while it lives: where its run has begun, has not ended, and no block has begun another launch for
/// `patience` seconds, the process says so and ends with exit code 1.
class RegionWatch {
 public:
  RegionWatch(Device& device, WatchedRegion region);
  ~RegionWatch();
  RegionWatch(const RegionWatch&) = delete;
  RegionWatch& operator=(const RegionWatch&) = delete;

  struct Entry;

 private:
  std::shared_ptr<Entry> entry_;
};

/// "super-kernel: expected ... within 10 s, found none: 131 blocks in layers.0 gemv.linear, block 7 in layers.0
/// attention.decode": the launches that were begun first come first.
std::string endless_text(const WatchedRegion& region, std::span<const std::uint32_t> progress);

}  // namespace cermet
