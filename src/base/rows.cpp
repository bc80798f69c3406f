// Rows of a strided tensor.
#include <algorithm>
#include <optional>

#include "base/tensor.hpp"

namespace cermet {

Rows::Rows(const TensorView& view, int trailing) : data_(view.as<std::byte>()) {
  const int lead = std::max(view.shape.rank() - trailing, 0);
  const auto bytes = byte_size(view.dtype);
  for (int axis = lead; axis < view.shape.rank(); ++axis) length_ *= view.shape[axis];
  std::optional<std::int64_t> expected_step;
  for (int axis = lead - 1; axis >= 0; --axis) {
    if (view.shape[axis] != 1) {
      const std::int64_t step = view.strides[axis] * bytes;
      if (!expected_step) step_bytes_ = step;
      else if (step != *expected_step) uniform_ = false;
      expected_step = step * view.shape[axis];
    }
    count_ *= view.shape[axis];
  }
  if (uniform_) return;
  for (int axis = 0; axis < lead; ++axis) {
    lead_dims_.push_back(view.shape[axis]);
    lead_step_bytes_.push_back(view.strides[axis] * bytes);
  }
}

std::byte* Rows::strided_row(std::int64_t r) const {
  std::byte* address = data_;
  for (int axis = lead_dims_.rank() - 1; axis >= 0; --axis) {
    address += r % lead_dims_[axis] * lead_step_bytes_[axis];
    r /= lead_dims_[axis];
  }
  return address;
}

}  // namespace cermet
