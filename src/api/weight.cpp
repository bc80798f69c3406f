#include "api/weight.hpp"

#include <algorithm>

#include "api/caller_tensor.hpp"
#include "select/bound_op.hpp"

namespace cermet::api {

OwnedTensor Weight::host_copy() const {
  OwnedTensor copy(type_.dtype, shape_);
  copy_to_host(handle_->context, source_, on_device_, copy.memory.data());
  return copy;
}

Weight::Form Weight::make(const WeightLayout* layout) const {
  Form form{layout, {}, {}};
  Context& context = handle_->context;
  Stream* const stream = context.stream();
  if (stream && !layout && on_device_) {
    form.device = context.device().allocate(dense_bytes(type_.dtype, shape_));
    copy_rows(source_, form.device.data(),
              [&](std::byte* to, const std::byte* from, std::int64_t bytes) { stream->copy(to, from, bytes); });
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
  const auto same = [&](const Form& f) {
    return f.layout == layout || (layout && f.layout && f.layout->name == layout->name);
  };
  auto found = std::find_if(forms_.begin(), forms_.end(), same);
  if (found == forms_.end()) {
    const std::string_view name = layout ? layout->name : "row-major";
    require(source_.present, "weight {}: expected its tensor, to make the layout {}, found it detached",
            type_.to_string(), name);
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
