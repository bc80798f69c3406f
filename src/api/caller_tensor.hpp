// A caller's tensor whose type is not known beforehand, and copies of its elements.
#pragma once

#include <dlpack/dlpack.h>

#include <algorithm>
#include <string_view>

#include "base/tensor.hpp"
#include "runtime/context.hpp"

namespace cermet::api {

/// Its own type, or with `dtype` of the element type that this names. Throws Error, which begins with `what`, where it
/// has none of Cermet's types or shapes.
TensorType declared_type(const DLTensor& tensor, const char* dtype, std::string_view what);

/// Calls copy(to, from, bytes) for the rows of a view, or once where it is dense, or for each element where no row is.
template <class Copy>
void copy_rows(const TensorView& from, std::byte* to, Copy&& copy) {
  if (from.elements() == 0) return;
  if (from.is_dense()) return copy(to, from.as<std::byte>(), dense_bytes(from.dtype, from.shape));
  const bool has_rows = from.shape.rank() > 0 && (from.shape.back() == 1 || from.strides.back() == 1);
  const Rows rows(from, has_rows ? 1 : 0);
  const std::int64_t bytes = rows.length() * byte_size(from.dtype);
  for (std::int64_t r = 0; r < rows.count(); ++r) copy(to + r * bytes, rows.row(r), bytes);
}

/// The elements, densely, in memory of the host. `on_device`: they are in that of the context's device, and complete.
void copy_to_host(const Context& context, const TensorView& from, bool on_device, std::byte* to);

}  // namespace cermet::api
