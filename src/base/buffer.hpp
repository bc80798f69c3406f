// Owned memory, aligned for vector loads and cache lines.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/tensor.hpp"

namespace cermet {

/// Uninitialised memory aligned to 64 bytes. Throws Error(out_of_memory) naming the size.
class AlignedBuffer {
 public:
  static constexpr std::int64_t alignment = 64;
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, static_cast<std::size_t>(round_up(bytes, alignment)))));
    if (!data_) fail(Status::out_of_memory, "memory: expected room for {} bytes, found none", bytes);
  }
  std::byte* data() const { return data_.get(); }
  std::int64_t size() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t bytes_ = 0;
};

/// A tensor that owns its memory.
struct OwnedTensor {
  AlignedBuffer memory;
  TensorView view;

  OwnedTensor() = default;
  OwnedTensor(DType dtype, const Shape& shape) : memory(shape.elements() * static_cast<std::int64_t>(size_of(dtype))), view(memory.data(), dtype, shape) {}
};

}  // namespace cermet
