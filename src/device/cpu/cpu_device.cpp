// The host as a device: ordinary process memory.
#include "base/buffer.hpp"
#include "base/cores.hpp"
#include "device/cpu/processor.hpp"
#include "device/device.hpp"

namespace cermet {
namespace {

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string name() const override {
    const int cores = usable_cores();
    const std::string text = fmt::format("{} core{}", cores, cores == 1 ? "" : "s");
    return processor().name.empty() ? fmt::format("cpu ({})", text)
                                    : fmt::format("cpu ({}, {})", processor().name, text);
  }
  DeviceBuffer allocate(std::int64_t bytes) override {
    auto owner = std::make_shared<AlignedBuffer>(bytes);
    std::byte* data = owner->data();
    return {std::shared_ptr<std::byte>(std::move(owner), data), bytes};
  }
  bool computes() const override { return true; }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace cermet
