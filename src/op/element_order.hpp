// The ranking key of an element of a tensor, for references.
#pragma once

#include "op/ordinal.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

inline std::int64_t ordinal(const TensorView& view, std::int64_t index) {
  if (view.dtype == DType::u64) return ordinal(view.as<const std::uint64_t>()[element_offset(view, index)]);
  if (view.dtype == DType::f64) return ordinal(load(view, index));
  return is_floating(view.dtype) ? ordinal(static_cast<float>(load(view, index))) : load_integer(view, index);
}

}  // namespace cermet
