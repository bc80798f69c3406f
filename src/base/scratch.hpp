// Memory of what lives shortly, kept for what comes next: the system clears pages that it hands out, which takes longer
// than to read a file into them.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/buffer.hpp"

namespace cermet {

/// Not thread-safe.
class Scratch {
 public:
  static constexpr std::int64_t most_kept = 64 << 20;  ///< bytes of a block that is kept; larger ones are few
  static constexpr std::size_t most_blocks = 16;

  /// A dense tensor in such memory, which goes back when it is destroyed; the scratch must outlive it.
  class Tensor {
   public:
    Tensor(Scratch& from, DType dtype, const Shape& shape)
        : from_(&from), memory_(from.take(dense_bytes(dtype, shape))), view(memory_.data(), dtype, shape) {}
    Tensor(Tensor&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), memory_(std::move(other.memory_)), view(other.view) {}
    Tensor& operator=(Tensor&&) = delete;
    ~Tensor() {
      if (from_) from_->keep(std::move(memory_));
    }

   private:
    Scratch* from_;
    AlignedBuffer memory_;

   public:
    TensorView view;
  };

  Scratch() { kept_.reserve(most_blocks); }
  /// Frees what is kept.
  void clear() { kept_.clear(); }
  std::size_t blocks() const { return kept_.size(); }  ///< that are kept

 private:
  /// The smallest block that is kept and large enough. Where none is, the largest makes room for a new one.
  AlignedBuffer take(std::int64_t bytes) {
    const auto found = std::ranges::lower_bound(kept_, bytes, {}, &AlignedBuffer::size);
    if (found == kept_.end()) {
      if (!kept_.empty()) kept_.pop_back();
      return AlignedBuffer(bytes);
    }
    AlignedBuffer block = std::move(*found);
    kept_.erase(found);
    return block;
  }
  void keep(AlignedBuffer block) noexcept {
    if (block.size() < AlignedBuffer::huge_page || block.size() > most_kept || kept_.size() == most_blocks) return;
    kept_.insert(std::ranges::upper_bound(kept_, block.size(), {}, &AlignedBuffer::size), std::move(block));
  }

  std::vector<AlignedBuffer> kept_;  ///< in rising order of size
};

}  // namespace cermet
