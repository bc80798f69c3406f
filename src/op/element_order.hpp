// The ranking key of an element of a tensor, for references.
#pragma once

#include "op/order_key.hpp"
#include "op/reference.hpp"

namespace cermet {

inline std::int64_t order_key(const TensorView& view, std::int64_t index) {
  if (view.dtype == DType::u64) return order_key(view.as<const std::uint64_t>()[element_offset(view, index)]);
  if (view.dtype == DType::f64) return order_key(load(view, index));
  return is_floating(view.dtype) ? order_key(static_cast<float>(load(view, index))) : load_integer(view, index);
}

}  // namespace cermet
