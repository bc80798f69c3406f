// Memory of the paged KV cache: keys and values of every layer, with their scales where they are quantized to int8.
#pragma once

#include <vector>

#include "device/device.hpp"
#include "model/config.hpp"
#include "runtime/executable.hpp"

namespace cermet {

class CacheMemory {
 public:
  CacheMemory(Device& device, const ModelConfig& config, DType dtype, std::int64_t pages, std::int64_t block_size);
  /// Binds it to a decoder graph's inputs.
  void bind(Executable& executable) const;
  std::int64_t bytes() const;

 private:
  std::int64_t layers_;
  DType dtype_;
  Shape shape_, scales_shape_;
  std::vector<DeviceBuffer> memory_, scales_;  ///< keys, then values, of each layer
};

}  // namespace cermet
