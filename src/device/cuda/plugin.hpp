// The CUDA backend's plugin, libcermet_cuda.so: everything that calls NVIDIA's libraries, opened at run time.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/toolchain.hpp"
#include "device/cuda/window_map.hpp"
#include "device/device.hpp"
#include "device/device_group.hpp"
#include "device/peer_memory.hpp"

namespace cermet::cuda {

/// What the plugin exports, as `const PluginInterface* cermet_cuda_plugin()`. Both sides come from one build: `build`
/// says so.
struct PluginInterface {
  const char* build;
  /// Throws Error(unsupported) saying why no device can be used: no driver, one that is too old, no such device.
  std::unique_ptr<Device> (*make_device)(int index);
  /// A caller's CUstream (or cudaStream_t) on a device that make_device gave; it stays the caller's.
  std::unique_ptr<Stream> (*wrap_stream)(Device& device, void* stream);
  /// Works without a driver.
  std::unique_ptr<Toolchain> (*make_toolchain)();
  /// Devices that the driver shows; throws as make_device does where there is no usable driver.
  int (*device_count)();
  /// Why cuBLASLt cannot be called, as far as is known before it is opened; empty where it is there.
  std::string (*blas_problem)();
  TensorMap (*window_map)(const Device& device, const WindowMapShape& shape);
  /// "13.0"; throws as make_device does where there is no usable driver.
  std::string (*driver_version)();
  /// Why NCCL cannot be called; empty where it can. Opens it.
  std::string (*nccl_problem)();
  GroupIdentity (*make_group_identity)();
  /// Blocks until every rank has called it with the identity that one of them made.
  std::unique_ptr<DeviceGroup> (*join_device_group)(Device& device, int rank, int size, const GroupIdentity& identity);
  /// Of GPUs that address each other's memory: device/peer_memory.hpp.
  GpuIdentity (*identify)(const Device& device);
  SharedMemoryHandle (*share_memory)(Device& device, const DeviceBuffer& memory);
  DeviceBuffer (*open_memory)(Device& device, const SharedMemoryHandle& handle, std::int64_t bytes);
  void (*reach_device)(Device& device, int index);
};

/// The plugin, opened at the first call. Throws Error(unsupported) with the loader's reason where it is absent or from
/// another build.
const PluginInterface& plugin();
/// Why there is no CUDA device ("driver: libcuda.so.1 ... not found"); empty where one can be used.
std::string unavailable_reason();
/// Why products of a device's stream (Stream::multiply) would fail on this machine's GPUs; empty where they would not,
/// and where there is no GPU. Asked once.
const std::string& blas_problem();
/// "13.0": the version of the driver that all GPUs of this machine share; empty where there is none. Asked once.
const std::string& driver_version();
/// Identifies one build of program and plugin.
const char* build_id();

}  // namespace cermet::cuda
