// Where a measured choice holds: a device and the versions of what runs there, as canonical text.
#pragma once

#include <string>
#include <vector>

#include "base/target.hpp"

namespace cermet {

struct DeviceIdentity {
  std::string device;    ///< "NVIDIA H200, 132 SMs, sm_90a"; "AMD EPYC 9655, avx512_bf16, L1 48 KiB, L2 1024 KiB, L3
                         ///< 32768 KiB, 8 threads"
  std::string versions;  ///< "cermet 0.1.0, driver 13.0, NVRTC ..."; of a CPU "cermet 0.1.0, GNU 12.2.0"
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

/// The identity of the device that kernels are chosen for, or where `target` is null of this machine's CPU with so many
/// threads. Thread-safe.
DeviceIdentity device_identity(const Target* target, int threads);
/// Its parts: what is cheap to say, and what asks for a compiler of GPU kernels.
std::string device_text(const Target* target, int threads);
std::string versions_text(const Target* target);

/// Versions of entries that ship with the library: "cermet 0.1.0". They hold with every driver and compiler, because a
/// release is measured with one.
std::string shipped_versions();

/// Whether two devices' texts name the same device: a CPU's number of threads may differ.
bool is_same_device(std::string_view a, std::string_view b);
/// This machine's CPU and GPUs, the CPU with one thread.
std::vector<DeviceIdentity> devices_here();

}  // namespace cermet
