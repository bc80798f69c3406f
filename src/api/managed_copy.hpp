// A tensor in memory of the host that the caller keeps, and frees by DLPack's deleter.
#pragma once

#include <memory>
#include <vector>

#include "api/plain_tensor.hpp"
#include "base/buffer.hpp"

namespace cermet::api {

class ManagedCopy {
 public:
  ManagedCopy(DType dtype, const Shape& shape) : memory_(dtype, shape) {}
  std::byte* data() { return memory_.memory.data(); }

  static DLManagedTensor* release(std::unique_ptr<ManagedCopy> copy) {
    return release(std::move(copy), [](const TensorView& view) { return view; });
  }
  /// The same, seen with other dimensions.
  template <class Seen>
  static DLManagedTensor* release(std::unique_ptr<ManagedCopy> copy, Seen seen) {
    const TensorView view = seen(copy->memory_.view);
    copy->shape_.assign(view.shape.begin(), view.shape.end());
    copy->shape_.insert(copy->shape_.end(), view.strides.begin(), view.strides.end());
    std::int64_t* const strides = view.is_dense() ? nullptr : copy->shape_.data() + view.shape.rank();
    copy->managed_ = {
        {view.data, {kDLCPU, 0}, view.shape.rank(), dl_type_of(view.dtype), copy->shape_.data(), strides, 0},
        copy.get(),
        [](DLManagedTensor* m) { delete static_cast<ManagedCopy*>(m->manager_ctx); }};
    return &copy.release()->managed_;
  }

 private:
  OwnedTensor memory_;
  std::vector<std::int64_t> shape_;  ///< and strides
  DLManagedTensor managed_{};
};

}  // namespace cermet::api
