#include "api/weight.hpp"

#include <cstring>

#include "api/dlpack.hpp"
#include "api/guard.hpp"
#include "base/text.hpp"
#include "select/bound_op.hpp"

namespace cermet::api {
namespace {

/// Calls copy(to, from, bytes) for the rows of a view, or once where it is dense.
template <class Copy>
void copy_rows(const TensorView& from, std::byte* to, Copy&& copy) {
  if (from.elements() == 0) return;
  if (from.is_dense()) return copy(to, from.as<std::byte>(), dense_bytes(from.dtype, from.shape));
  const Rows rows(from, std::min(from.shape.rank(), 1));
  const std::int64_t bytes = rows.length() * static_cast<std::int64_t>(size_of(from.dtype));
  for (std::int64_t r = 0; r < rows.count(); ++r) copy(to + r * bytes, rows.row(r), bytes);
}

/// The caller's tensor, of its own type or of the one that `dtype` names.
TensorType type_of(const DLTensor& tensor, const char* dtype) {
  const auto type = dtype ? dtype_from_name(dtype) : dtype_of(tensor.dtype);
  require(type.has_value(), "weight: dtype: expected {}, found {}", dtypes::all.to_string(), dtype ? quote(dtype) : text_of(tensor.dtype));
  require(tensor.ndim >= 0 && tensor.ndim <= Shape::max_rank, "weight: expected 0 to {} dimensions, found {}", Shape::max_rank, tensor.ndim);
  require(tensor.ndim == 0 || tensor.shape, "weight: expected a shape, found NULL");
  TensorType made{*type, Dims(tensor.shape, tensor.shape + tensor.ndim)};
  for (const Dim& d : made.dims) require(d.constant() >= 0, "weight: expected non-negative dimensions, found {}", made.to_string());
  made.bytes();  // throws where they overflow
  return made;
}

}  // namespace

OwnedTensor Weight::host_copy() const {
  OwnedTensor copy(type_.dtype, shape_);
  Stream* const stream = on_device_ ? handle_->context.stream() : nullptr;
  copy_rows(source_, copy.memory.data(), [&](std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (stream) stream->download(to, from, bytes);
    else std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
  if (stream) stream->synchronize();
  return copy;
}

Weight::Form Weight::make(const WeightLayout* layout) const {
  Form form{layout, {}, {}};
  Context& context = handle_->context;
  Stream* const stream = context.stream();
  if (stream && !layout && on_device_) {
    form.device = context.device().allocate(dense_bytes(type_.dtype, shape_));
    copy_rows(source_, form.device.data(), [&](std::byte* to, const std::byte* from, std::int64_t bytes) { stream->copy(to, from, bytes); });
    stream->synchronize();
    return form;
  }
  OwnedTensor dense;  // where the source is not
  if (on_device_ || !source_.is_dense() || (!layout && !stream)) dense = host_copy();
  const TensorView view = dense.view.present ? dense.view : source_;
  if (layout) {
    form.host = AlignedBuffer(packed_bytes(*layout, type_));
    pack_weight(*layout, view, form.host.data(), context.pool());
  } else if (!stream) {
    form.host = std::move(dense.memory);
  }
  if (!stream) return form;
  const void* const bytes = layout ? form.host.data() : view.data;
  form.device = context.device().allocate(layout ? form.host.size() : dense_bytes(type_.dtype, shape_));
  stream->upload(form.device.data(), bytes, form.device.size());
  stream->synchronize();
  form.host = {};
  return form;
}

TensorView Weight::form(const WeightLayout* layout) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Form& f) { return f.layout == layout || (layout && f.layout && f.layout->name == layout->name); };
  auto found = std::find_if(forms_.begin(), forms_.end(), same);
  if (found == forms_.end()) {
    const std::string_view name = layout ? layout->name : "row-major";
    require(source_.present, "weight {}: expected its tensor, to make the layout {}, found it detached", type_.to_string(), name);
    found = forms_.insert(forms_.end(), make(layout));
  }
  return TensorView(found->data(), type_.dtype, shape_);
}

void Weight::detach() {
  const std::lock_guard lock(mutex_);
  source_ = {};
}

std::int64_t Weight::bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t sum = 0;
  for (const Form& form : forms_) sum += form.host.size() + form.device.size();
  return sum;
}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_weight_create(cermet_handle* handle, const DLTensor* tensor, const char* dtype, cermet_weight** weight) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(tensor, "tensor");
    api::require_pointer(weight, "weight");
    const TensorType type = api::type_of(*tensor, dtype);
    const TensorView view =
        api::checked_view(*tensor, {.op = "weight", .role = "tensor", .operand = "value", .type = &type, .device = handle->shared->memory, .or_host = true});
    const bool on_device = tensor->device.device_type != kDLCPU;
    *weight = new cermet_weight{std::make_shared<api::Weight>(handle->shared, view, on_device)};
  });
}

void cermet_weight_destroy(cermet_weight* weight) { delete weight; }
void cermet_weight_detach(cermet_weight* weight) {
  if (weight) weight->weight->detach();
}
size_t cermet_weight_bytes(const cermet_weight* weight) { return weight ? static_cast<size_t>(weight->weight->bytes()) : 0; }
