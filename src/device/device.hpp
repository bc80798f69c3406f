// A place where tensors live and kernels run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/target.hpp"
#include "device/stream.hpp"

namespace cermet {

enum class DeviceKind : std::uint8_t { cpu, null, cuda };

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

/// A descriptor of bulk tensor copies (CUtensorMap), opaque here and passed to kernels by value.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> bytes;
};

/// Tiles of row-major matrices [rows, columns] that a bulk tensor copy moves to shared memory.
struct TensorMapShape {
  /// An axis that counts matrices.
  struct Axis {
    std::int64_t size = 1, stride = 0;  ///< the stride in elements; in bytes a multiple of 16
    std::uint32_t box = 1;              ///< matrices of a tile
  };
  void* data = nullptr;  ///< 16-byte aligned
  DType dtype = DType::bf16;
  std::int64_t rows = 0, columns = 0, row_stride = 0;  ///< in elements; the stride in bytes is a multiple of 16
  std::uint32_t box_rows = 0, box_columns = 0;         ///< elements of a tile
  std::uint32_t swizzle_bytes = 128;                   ///< 0, 32, 64 or 128; a tile's row has at most as many bytes
  std::array<Axis, 2> outer{};                         ///< axes around a matrix, the inner one first
  int outer_axes = 0;  ///< of those; copies have as many coordinates beside column and row
};

/// A function of a loaded image; the image stays loaded as long as a copy of `owner` lives.
struct LoadedFunction {
  std::shared_ptr<void> owner;
  DeviceFunction function;
  int registers = 0;             ///< of a thread
  std::int64_t local_bytes = 0;  ///< of a thread: stack and spills
  int blocks_per_multiprocessor = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;  ///< "cpu (AMD EPYC 9655, 2 cores)"
  /// Aligned to 64 bytes at least. Throws Error(out_of_memory) naming the size.
  virtual DeviceBuffer allocate(std::int64_t bytes) = 0;
  /// Whether kernels are launched; false on the null device, which does everything else.
  virtual bool computes() const = 0;

  /// What kernels are chosen and compiled for; null where the CPU's kernels run.
  virtual const Target* target() const { return nullptr; }
  /// "12.8": version of the driver that runs kernels; empty where there is none.
  virtual std::string driver_version() const { return {}; }
  /// Sets target()->measured, before anything is chosen for the device; null forgets it. Nothing happens where target()
  /// is null.
  virtual void set_measured(const std::shared_ptr<const DeviceLimits>&) {}
  /// Sets target()->compact_weights, likewise.
  virtual void set_compact_weights(bool) {}
  /// Host memory that copies can use asynchronously.
  virtual DeviceBuffer allocate_host(std::int64_t bytes) { return allocate(bytes); }
  /// The members below exist where target() is not null.
  virtual std::unique_ptr<Stream> make_stream() {
    fail(Status::unsupported, "device {}: expected one with streams", name());
  }
  /// Loads an image (cubin) and finds a function in it; `threads` and `shared_bytes` are those of its launches.
  virtual LoadedFunction load(std::span<const std::byte> image, const char* function, int threads,
                              std::int64_t shared_bytes);
  /// Size of each parameter of a function, where the driver says so; otherwise nothing. It refuses the first that does
  /// not exist, which tools report.
  virtual std::vector<std::uint32_t> parameter_bytes(const DeviceFunction&) { return {}; }
  virtual TensorMap tensor_map(const TensorMapShape& shape);
  /// Bytes of device memory that are free on the device, for all processes.
  virtual std::int64_t free_bytes() const { return 0; }
  /// Bytes of all buffers of allocate() that live; 0 on the CPU.
  virtual std::int64_t held_bytes() const { return 0; }
};

/// The host.
std::unique_ptr<Device> make_cpu_device();
/// Computes nothing and allocates nothing: the whole compile path runs without hardware. With a compute capability
/// (90), kernels are chosen and compiled for such a CUDA device; with 0, the CPU's.
std::unique_ptr<Device> make_null_device(int compute_capability = 0);
/// "cpu", "null", "null:sm_90", "cuda" or "cuda:1"; throws Error naming what exists, or why a CUDA device cannot be
/// used.
std::unique_ptr<Device> make_device(std::string_view name);

}  // namespace cermet
