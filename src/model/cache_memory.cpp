#include "model/cache_memory.hpp"

#include "model/decoder.hpp"

namespace cermet {

CacheMemory::CacheMemory(Device& device, const DecoderModel& decoder, DType dtype, std::int64_t pages,
                         std::int64_t block_size) {
  for (std::size_t i = 0; i < decoder.layers.size(); ++i) {
    const auto* attention = find_body<Attention>(decoder.layers[i]);
    if (attention == nullptr) continue;
    const auto layer = static_cast<std::int64_t>(i);
    const Shape vectors{pages, attention->kv_heads, block_size, attention->head_dim},
        scales{pages, attention->kv_heads, block_size};
    const auto add = [&](std::string input, DType type, const Shape& shape) {
      memory_.push_back({std::move(input), type, shape, device.allocate(dense_bytes(type, shape))});
    };
    add(decoder_io::key_cache(layer), dtype, vectors);
    if (dtype == DType::i8) add(decoder_io::key_scales(layer), DType::f32, scales);
    add(decoder_io::value_cache(layer), dtype, vectors);
    if (dtype == DType::i8) add(decoder_io::value_scales(layer), DType::f32, scales);
  }
}

void CacheMemory::bind(Executable& executable) const {
  for (const Part& part : memory_) executable.bind(part.input, TensorView(part.memory.data(), part.dtype, part.shape));
}

std::int64_t CacheMemory::bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : memory_) bytes += part.memory.size();
  return bytes;
}

}  // namespace cermet
