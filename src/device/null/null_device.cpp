// A device without hardware: it hands out addresses that stand for memory and computes nothing.
#include <atomic>
#include <cstring>
#include <memory>

#include "base/buffer.hpp"
#include "device/device.hpp"

namespace cermet {
namespace {

class NullGraph final : public CapturedGraph {
 public:
  std::int64_t nodes() const override { return 0; }
};

/// Accepts everything and does nothing.
class NullStream final : public Stream {
 public:
  void upload(void*, const void*, std::int64_t) override {}
  void download(void*, const void*, std::int64_t) override {}
  void copy(void*, const void*, std::int64_t) override {}
  void fill(void*, unsigned char, std::int64_t) override {}
  void synchronize() override {}
  void launch(const LaunchShape&, DeviceFunction, void**) override {}
  void multiply(const MatrixProduct&) override {}
  void begin_capture() override {}
  std::unique_ptr<CapturedGraph> end_capture() override { return std::make_unique<NullGraph>(); }
  void abandon_capture() noexcept override {}
  void replay(const CapturedGraph&) override {}
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<DeviceEvent>(); }
  void record(DeviceEvent&) override {}
  void wait(const DeviceEvent&) override {}
  void synchronize_event(const DeviceEvent&) override {}
  double seconds_between(const DeviceEvent&, const DeviceEvent&) override { return 0; }
};

/// What kernels are compiled for without a device: a large GPU of each architecture.
Target target_of(int compute_capability) {
  const bool large = compute_capability == 80 || compute_capability >= 90;
  const std::int64_t shared = compute_capability == 75 ? 64 << 10
                              : large                  ? (compute_capability == 80 ? 163 : 227) << 10
                                                       : 99 << 10;
  return {fmt::format("null:sm_{}", compute_capability),
          compute_capability,
          large ? 132 : 64,
          shared,
          50 << 20,
          std::int64_t{64} << 30};
}

class NullDevice final : public Device {
 public:
  explicit NullDevice(int compute_capability) : target_(target_of(compute_capability)) {}
  DeviceKind kind() const override { return DeviceKind::null; }
  std::string name() const override { return target() ? target_.name : "null"; }
  const Target* target() const override { return target_.compute_capability ? &target_ : nullptr; }
  void set_measured(const std::shared_ptr<const DeviceLimits>& limits) override { target_.measured = limits; }
  void set_compact_weights(bool compact) override { target_.compact_weights = compact; }
  /// Host memory is real: inputs are filled there as for any device.
  DeviceBuffer allocate_host(std::int64_t bytes) override {
    auto owner = std::make_shared<AlignedBuffer>(bytes);
    std::byte* data = owner->data();
    if (data) std::memset(data, 0, static_cast<std::size_t>(bytes));
    return {std::shared_ptr<std::byte>(std::move(owner), data), bytes};
  }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<NullStream>(); }
  LoadedFunction load(std::span<const std::byte>, const char*, int, std::int64_t) override { return {}; }
  TensorMap tensor_map(const TensorMapShape&) override { return {}; }
  std::int64_t free_bytes() const override { return target_.memory_bytes; }
  std::int64_t held_bytes() const override { return held_->load(std::memory_order_relaxed); }
  DeviceBuffer allocate(std::int64_t bytes) override {
    const std::uintptr_t address = next_.fetch_add(static_cast<std::uintptr_t>(round_up(bytes, 64)) + 64);
    held_->fetch_add(bytes, std::memory_order_relaxed);
    return {std::shared_ptr<std::byte>(
                reinterpret_cast<std::byte*>(address),
                [held = held_, bytes](std::byte*) { held->fetch_sub(bytes, std::memory_order_relaxed); }),
            bytes};
  }
  bool computes() const override { return false; }

 private:
  /// Beyond what a process may address, so that touching it faults immediately; distinct buffers get distinct ranges.
  std::shared_ptr<std::atomic<std::int64_t>> held_ = std::make_shared<std::atomic<std::int64_t>>(0);
  std::atomic<std::uintptr_t> next_{std::uintptr_t{1} << 62};
  Target target_;
};

}  // namespace

std::unique_ptr<Device> make_null_device(int compute_capability) {
  return std::make_unique<NullDevice>(compute_capability);
}

}  // namespace cermet
