// Memory of the paged KV cache: keys and values of every layer, with their scales where they are quantized to int8.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"
#include "model/config.hpp"
#include "runtime/executable.hpp"

namespace cermet {

class CacheMemory {
 public:
  CacheMemory(Device& device, const DecoderModel& decoder, DType dtype, std::int64_t pages, std::int64_t block_size);
  /// Binds it to a decoder graph's inputs.
  void bind(Executable& executable) const;
  std::int64_t bytes() const;

 private:
  struct Part {
    std::string input;  ///< of the graph
    DType dtype;
    Shape shape;
    DeviceBuffer memory;
  };
  std::vector<Part> memory_;
};

}  // namespace cermet
