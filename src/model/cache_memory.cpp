#include "model/cache_memory.hpp"

#include "model/decoder.hpp"

namespace cermet {

CacheMemory::CacheMemory(Device& device, const ModelConfig& config, DType dtype, std::int64_t pages,
                         std::int64_t block_size)
    : layers_(config.layers),
      dtype_(dtype),
      shape_{pages, config.kv_heads, block_size, config.head_dim},
      scales_shape_{pages, config.kv_heads, block_size} {
  const std::int64_t bytes = shape_.elements() * static_cast<std::int64_t>(size_of(dtype));
  for (std::int64_t i = 0; i < 2 * layers_; ++i) {
    memory_.push_back(device.allocate(bytes));
    if (dtype == DType::i8) scales_.push_back(device.allocate(dense_bytes(DType::f32, scales_shape_)));
  }
}

void CacheMemory::bind(Executable& executable) const {
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    const auto memory = [&](std::int64_t i) {
      return TensorView(memory_[static_cast<std::size_t>(2 * layer + i)].data(), dtype_, shape_);
    };
    executable.bind(decoder_io::key_cache(layer), memory(0));
    executable.bind(decoder_io::value_cache(layer), memory(1));
    if (scales_.empty()) continue;
    const auto scales = [&](std::int64_t i) {
      return TensorView(scales_[static_cast<std::size_t>(2 * layer + i)].data(), DType::f32, scales_shape_);
    };
    executable.bind(decoder_io::key_scales(layer), scales(0));
    executable.bind(decoder_io::value_scales(layer), scales(1));
  }
}

std::int64_t CacheMemory::bytes() const {
  std::int64_t bytes = 0;
  for (const auto* buffers : {&memory_, &scales_})
    for (const DeviceBuffer& buffer : *buffers) bytes += buffer.size();
  return bytes;
}

}  // namespace cermet
