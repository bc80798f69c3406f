// A place where tensors live and kernels run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cermet {

enum class DeviceKind : std::uint8_t { cpu, null };

/// Memory of a device; freed with the object. Null-device memory has addresses but must not be touched.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(std::shared_ptr<std::byte> memory, std::int64_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  std::byte* data() const { return memory_.get(); }
  std::int64_t size() const { return bytes_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::int64_t bytes_ = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;  ///< "cpu (AMD EPYC 9655, 2 cores)"
  /// 64-byte aligned memory. Throws Error(out_of_memory) naming the size.
  virtual DeviceBuffer allocate(std::int64_t bytes) = 0;
  /// Whether kernels are launched; false on the null device, which goes through the motions of everything else.
  virtual bool computes() const = 0;
};

/// The host.
std::unique_ptr<Device> make_cpu_device();
/// Computes nothing and allocates nothing: the whole compile path runs without hardware.
std::unique_ptr<Device> make_null_device();
/// "cpu" or "null"; throws Error naming what exists.
std::unique_ptr<Device> make_device(std::string_view name);

}  // namespace cermet
