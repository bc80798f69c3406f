// Owned memory, aligned for vector loads and cache lines.
#pragma once

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/tensor.hpp"

namespace cermet {

/// Uninitialized memory aligned to 64 bytes; large blocks request huge pages from the system, because streaming weights
/// through 4 KiB pages spends as long on page walks as on reading. Throws Error(out_of_memory) naming the size.
class AlignedBuffer {
 public:
  static constexpr std::int64_t alignment = 64;
  static constexpr std::int64_t huge_page = 2 << 20;
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    const std::int64_t step = bytes >= huge_page ? huge_page : alignment;
    const bool possible = bytes > 0 && bytes <= std::numeric_limits<std::int64_t>::max() - step;
    const auto rounded = possible ? static_cast<std::size_t>(round_up(bytes, step)) : 0;
    if (possible) data_.reset(static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(step), rounded)));
    if (!data_) fail(Status::out_of_memory, "memory: expected room for {} bytes, found none", bytes);
#if defined(__linux__)
    if (step == huge_page)
      madvise(data_.get(), rounded, MADV_HUGEPAGE);  // a hint: ignored by systems without huge pages
#endif
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
  OwnedTensor(DType dtype, const Shape& shape) : memory(dense_bytes(dtype, shape)), view(memory.data(), dtype, shape) {}
};

}  // namespace cermet
