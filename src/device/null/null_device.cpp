// A device without hardware: it hands out addresses that stand for memory and computes nothing.
#include <atomic>

#include "base/checked.hpp"
#include "device/device.hpp"

namespace cermet {
namespace {

class NullDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::null; }
  std::string name() const override { return "null"; }
  DeviceBuffer allocate(std::int64_t bytes) override {
    const std::uintptr_t address = next_.fetch_add(static_cast<std::uintptr_t>(round_up(bytes, 64)) + 64);
    return {std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(address), [](std::byte*) {}), bytes};
  }
  bool computes() const override { return false; }

 private:
  /// Beyond what a process may address, so that touching it faults at once; distinct buffers get distinct ranges.
  std::atomic<std::uintptr_t> next_{std::uintptr_t{1} << 62};
};

}  // namespace

std::unique_ptr<Device> make_null_device() { return std::make_unique<NullDevice>(); }

}  // namespace cermet
