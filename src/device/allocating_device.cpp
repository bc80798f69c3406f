#include "device/allocating_device.hpp"

#include <atomic>

namespace cermet {
namespace {

class AllocatingDevice final : public Device {
 public:
  AllocatingDevice(Device& device, const DeviceAllocator& allocator) : device_(device), allocator_(allocator) {}

  DeviceBuffer allocate(std::int64_t bytes) override {
    if (bytes == 0) return {};
    const auto size = static_cast<std::size_t>(bytes);
    void* const memory = allocator_.allocate(size, allocator_.user);
    if (!memory)
      fail(Status::out_of_memory, "memory of {}: expected room for {} bytes from the caller's allocator, found none",
           name(), bytes);
    if (reinterpret_cast<std::uintptr_t>(memory) % 64 != 0) {
      allocator_.release(memory, size, allocator_.user);
      fail(Status::invalid_argument, "memory of {}: expected an allocator that aligns to 64 bytes, found address {}",
           name(), memory);
    }
    held_->fetch_add(bytes, std::memory_order_relaxed);
    const auto release = [allocator = allocator_, size, held = held_](std::byte* data) {
      held->fetch_sub(static_cast<std::int64_t>(size), std::memory_order_relaxed);
      allocator.release(data, size, allocator.user);
    };
    return {std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), release), bytes};
  }
  std::int64_t held_bytes() const override {
    return device_.held_bytes() + (target() ? held_->load(std::memory_order_relaxed) : 0);
  }

  DeviceKind kind() const override { return device_.kind(); }
  std::string name() const override { return device_.name(); }
  bool computes() const override { return device_.computes(); }
  const Target* target() const override { return device_.target(); }
  std::string driver_version() const override { return device_.driver_version(); }
  void set_measured(const std::shared_ptr<const DeviceLimits>& limits) override { device_.set_measured(limits); }
  void set_compact_weights(bool compact) override { device_.set_compact_weights(compact); }
  DeviceBuffer allocate_host(std::int64_t bytes) override { return device_.allocate_host(bytes); }
  std::unique_ptr<Stream> make_stream() override { return device_.make_stream(); }
  LoadedFunction load(std::span<const std::byte> image, const char* function, int threads,
                      std::int64_t shared_bytes) override {
    return device_.load(image, function, threads, shared_bytes);
  }
  std::vector<std::uint32_t> parameter_bytes(const DeviceFunction& function) override {
    return device_.parameter_bytes(function);
  }
  TensorMap tensor_map(const TensorMapShape& shape) override { return device_.tensor_map(shape); }
  std::int64_t free_bytes() const override { return device_.free_bytes(); }

 private:
  Device& device_;
  DeviceAllocator allocator_;
  std::shared_ptr<std::atomic<std::int64_t>> held_ = std::make_shared<std::atomic<std::int64_t>>();
};

}  // namespace

std::unique_ptr<Device> make_allocating_device(Device& device, const DeviceAllocator& allocator) {
  return std::make_unique<AllocatingDevice>(device, allocator);
}

}  // namespace cermet
