#include "api/shared_weights.hpp"

#include "api/caller_tensor.hpp"
#include "api/guard.hpp"

namespace cermet::api {

SharedWeights::SharedWeights(std::shared_ptr<Handle> handle)
    : handle_(std::move(handle)),
      context_(handle_->context.with_own_stream()),
      store_([this](const std::string& name, std::int64_t slice,
                    const TensorView& to) { read_constant(*handle_, memory_of(name), slice, to); },
             context_.pool(), context_.queue(), context_.stream() ? nullptr : &context_.device()) {
  store_.set_borrow([this](const std::string& name) { return borrowed(name); });
}

const ConstantMemory& SharedWeights::memory_of(const std::string& name) const {
  const auto found = tensors_.find(name);
  require(found != tensors_.end(), "weight '{}': expected one of the store, found none of that name", name);
  return found->second;
}

/// Memory of the device, or of the host for its kernels, as allocators align it.
TensorView SharedWeights::borrowed(const std::string& name) const {
  const ConstantMemory& memory = memory_of(name);
  const bool is_in_place = memory.on_device == (context_.stream() != nullptr);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(memory.view.data) % AlignedBuffer::alignment == 0;
  return is_in_place && is_aligned && memory.view.is_dense() ? memory.view : TensorView();
}

void SharedWeights::set(const char* name, const char* dtype, const DLTensor& tensor) {
  const TensorType type = declared_type(tensor, dtype, fmt::format("weight '{}'", name));
  const auto known = tensors_.find(name);
  if (known != tensors_.end() && known->second.view.type() != type)
    fail(Status::invalid_argument, "weight '{}': expected {}, the type of the one that it replaces, found {}", name,
         known->second.view.type().to_string(), type.to_string());
  tensors_[name] = constant_memory(*handle_, name, tensors_.size(), type, tensor, context_.computes());
  store_.replace(name);
}

void SharedWeights::take_constants(const GraphBuilder& from) {
  require(from.handle() == handle_, "weights: expected a store of the graph's handle, found one of another");
  for (const Value& value : from.graph().values()) {
    if (value.kind != ValueKind::constant || !std::holds_alternative<std::monostate>(value.source)) continue;
    const auto given = from.constants().find(value.name);
    if (given != from.constants().end()) tensors_.try_emplace(value.name, given->second);
    const auto known = tensors_.find(value.name);
    if (known == tensors_.end() && !context_.computes()) continue;
    require(known != tensors_.end(), "constant '{}': expected values, of the graph or of the weights, found none",
            value.name);
    if (known->second.view.type() != value.type)
      fail(Status::invalid_argument, "constant '{}': expected {}, found {} in the weights", value.name,
           value.type.to_string(), known->second.view.type().to_string());
  }
}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_weights_create(cermet_handle* handle, cermet_weights** weights) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(weights, "weights");
    *weights = new cermet_weights{std::make_shared<api::SharedWeights>(handle->shared)};
  });
}

void cermet_weights_destroy(cermet_weights* weights) { delete weights; }

cermet_status cermet_weights_set(cermet_weights* weights, const char* name, const char* dtype, const DLTensor* tensor) {
  return api::guarded([&] {
    api::require_pointer(weights, "weights");
    api::require_pointer(name, "name");
    api::require_pointer(tensor, "tensor");
    weights->weights->set(name, dtype, *tensor);
  });
}

size_t cermet_weights_bytes(const cermet_weights* weights) { return weights ? weights->weights->bytes() : 0; }
