// Where a measured choice holds: a device and the versions of what runs there, as canonical text.
#pragma once

#include <string>
#include <vector>

#include "base/target.hpp"

namespace cermet {

struct DeviceIdentity {
  std::string device;    ///< "NVIDIA H200, 132 SMs, sm_90a"; "AMD EPYC 9655, avx512_bf16, L1 48 KiB, L2 1024 KiB, L3 32768 KiB, 8 threads"
  std::string versions;  ///< "cermet 0.1.0, driver 13.0, NVRTC 13.0"; of a CPU "cermet 0.1.0, GNU 12.2.0"
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

/// The identity of a device whose kernels are chosen for `target`, or where that is null of this machine's CPU with so many threads. Without an NVRTC it
/// names none. Made once for each device and number of threads. Thread-safe.
DeviceIdentity device_identity(const Target* target, int threads);

/// Versions of a table that ships with the library: "cermet 0.1.0". Its times were taken with one driver and hold, as choices, for all.
std::string shipped_versions();

}  // namespace cermet
