// One GPU: its primary context, memory and loaded code.
#pragma once

#include <memory>

#include "device/cuda/driver/driver.hpp"
#include "device/cuda/window_map.hpp"
#include "device/device.hpp"

namespace cermet::cuda {

/// The primary context of a device, held while anything made in it lives.
class Context {
 public:
  explicit Context(int index);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  CUcontext handle() const { return context_; }
  CUdevice device() const { return device_; }
  int attribute(CUdevice_attribute which) const;

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

std::unique_ptr<Stream> make_cuda_stream(std::shared_ptr<Context> context);
/// A caller's stream, which stays the caller's.
std::unique_ptr<Stream> wrap_cuda_stream(Device& device, void* stream);
std::unique_ptr<Stream> wrap_cuda_stream(std::shared_ptr<Context> context, CUstream stream);
std::unique_ptr<Device> make_cuda_device(int index);
/// That of a device which make_cuda_device gave.
std::shared_ptr<Context> context_of(const Device& device);
std::string version_of_driver();  ///< "13.0"
/// Unlike other maps, this one is encoded for the current context.
TensorMap encode_windows(const Device& device, const WindowMapShape& shape);

}  // namespace cermet::cuda
