#include "select/device_identity.hpp"

#include <fmt/format.h>

#include "device/cpu/processor.hpp"
#include "device/cuda/plugin.hpp"
#include "jit/jit.hpp"
#include "kernel/cpu/isa.hpp"

namespace cermet {
namespace {

/// "NVRTC libnvrtc.so.13 (109338064 bytes, build ...)"; asked once, because where there is none every question looks
/// for it again.
const std::string& gpu_compiler() {
  static const std::string text = [] {
    try {
      return fmt::format("NVRTC {}", jit::toolchain().version());
    } catch (const Error&) {
      return std::string("no NVRTC");
    }
  }();
  return text;
}

std::string cpu_text(int threads) {
  const Processor& p = processor();
  return fmt::format("{}, {}, L1 {} KiB, L2 {} KiB, L3 {} KiB, {} thread{}", p.name.empty() ? "CPU" : p.name,
                     cpu::name_of(cpu::active_isa()), p.l1_bytes >> 10, p.l2_bytes >> 10, p.l3_bytes >> 10, threads,
                     threads == 1 ? "" : "s");
}

/// A CPU's text up to its number of threads.
std::string_view without_threads(std::string_view device) {
  return device.ends_with(" threads") || device.ends_with(" thread") ? device.substr(0, device.rfind(", ")) : device;
}

}  // namespace

std::string device_text(const Target* target, int threads) {
  return target ? fmt::format("{}, {} SMs, {}", target->name, target->multiprocessors, target->architecture())
                : cpu_text(threads);
}

std::string versions_text(const Target* target) {
  if (!target) return fmt::format("{}, {}", shipped_versions(), CERMET_COMPILER);
  const std::string& driver = cuda::driver_version();
  return fmt::format("{}, {}, {}", shipped_versions(), driver.empty() ? "no driver" : "driver " + driver,
                     gpu_compiler());
}

DeviceIdentity device_identity(const Target* target, int threads) {
  return {device_text(target, threads), versions_text(target)};
}

std::string shipped_versions() { return "cermet " CERMET_VERSION; }

bool is_same_device(std::string_view a, std::string_view b) { return without_threads(a) == without_threads(b); }

std::vector<DeviceIdentity> devices_here() {
  std::vector<DeviceIdentity> list{device_identity(nullptr, 1)};
  if (!cuda::unavailable_reason().empty()) return list;
  for (int i = 0; i < cuda::plugin().device_count(); ++i) {
    const std::unique_ptr<Device> device = cuda::plugin().make_device(i);
    DeviceIdentity identity = device_identity(device->target(), 0);
    if (std::ranges::find(list, identity) == list.end()) list.push_back(std::move(identity));
  }
  return list;
}

}  // namespace cermet
