#include "api/caller_tensor.hpp"

#include <cstring>

#include "api/dlpack.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet::api {

TensorType declared_type(const DLTensor& tensor, const char* dtype, std::string_view what) {
  const auto type = dtype ? dtype_from_name(dtype) : dtype_of(tensor.dtype);
  require(type.has_value(), "{}: dtype: expected {}, found {}", what, dtypes::all.to_string(),
          dtype ? quote(dtype) : text_of(tensor.dtype));
  require(tensor.ndim >= 0 && tensor.ndim <= Shape::max_rank, "{}: expected 0 to {} dimensions, found {}", what,
          Shape::max_rank, tensor.ndim);
  require(tensor.ndim == 0 || tensor.shape, "{}: expected a shape, found NULL", what);
  TensorType made{*type, Dims(tensor.shape, tensor.shape + tensor.ndim)};
  for (const Dim& d : made.dims)
    require(d.constant() >= 0, "{}: expected non-negative dimensions, found {}", what, made.to_string());
  made.bytes();  // throws where they overflow
  return made;
}

void copy_to_host(const Context& context, const TensorView& from, bool on_device, std::byte* to) {
  Stream* const stream = on_device ? context.stream() : nullptr;
  copy_rows(from, to, [&](std::byte* target, const std::byte* source, std::int64_t bytes) {
    if (stream) stream->download(target, source, bytes);
    else std::memcpy(target, source, static_cast<std::size_t>(bytes));
  });
  if (stream) stream->synchronize();
}

}  // namespace cermet::api
