// A tensor in memory of the host that the caller keeps, and frees by DLPack's deleter.
#pragma once

#include <memory>
#include <vector>

#include "api/plain_tensor.hpp"
#include "base/buffer.hpp"

namespace cermet::api {

class ManagedCopy {
 public:
  ManagedCopy(DType dtype, const Shape& shape) : memory_(dtype, shape), shape_(shape.begin(), shape.end()) {}
  std::byte* data() { return memory_.memory.data(); }

  static DLManagedTensor* release(std::unique_ptr<ManagedCopy> copy) {
    const TensorView& view = copy->memory_.view;
    copy->managed_ = {
        {view.data, {kDLCPU, 0}, view.shape.rank(), dl_type_of(view.dtype), copy->shape_.data(), nullptr, 0},
        copy.get(),
        [](DLManagedTensor* m) { delete static_cast<ManagedCopy*>(m->manager_ctx); }};
    return &copy.release()->managed_;
  }

 private:
  OwnedTensor memory_;
  std::vector<std::int64_t> shape_;
  DLManagedTensor managed_{};
};

}  // namespace cermet::api
