// Storing keys or values in a paged cache.
#pragma once

#include "base/tensor.hpp"
#include "op/kv_cache.hpp"

namespace cermet::cpu {

struct CacheStream {
  const TensorView& cache;
  const TensorView* head_scales;   ///< of a quantized cache; one of these, or neither
  const TensorView* token_scales;  ///< filled
  KvCacheAxes axes;

  /// Offset in elements of a slot's vector in a cache in rows, or of its scale.
  std::int64_t offset(const TensorView& view, std::int64_t slot, std::int64_t head) const {
    const std::int64_t block = view.shape[axes.block];
    return slot / block * view.strides[0] + slot % block * view.strides[axes.block] + head * view.strides[axes.heads];
  }
  std::byte* target(std::int64_t slot, std::int64_t head) const {
    return cache.as<std::byte>() + offset(cache, slot, head) * byte_size(cache.dtype);
  }
  /// Rounds or quantizes one vector of float32 into its slot.
  void write(const float* x, std::int64_t slot, std::int64_t head) const;

 private:
  void write_columns(const float* x, float scale, std::int64_t slot, std::int64_t head) const;
};

}  // namespace cermet::cpu
