// The C functions of weights.
#include "api/caller_tensor.hpp"
#include "api/dlpack.hpp"
#include "api/guard.hpp"
#include "api/weight.hpp"

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_weight_create(cermet_handle* handle, const DLTensor* tensor, const char* dtype,
                                   cermet_weight** weight) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(tensor, "tensor");
    api::require_pointer(weight, "weight");
    const TensorType type = api::declared_type(*tensor, dtype, "weight");
    const TensorView view = api::checked_view(*tensor, {.op = "weight",
                                                        .role = "tensor",
                                                        .operand = "value",
                                                        .type = &type,
                                                        .device = handle->shared->memory,
                                                        .or_host = true});
    const bool on_device = tensor->device.device_type != kDLCPU;
    *weight = new cermet_weight{std::make_shared<api::Weight>(handle->shared, view, on_device)};
  });
}

void cermet_weight_destroy(cermet_weight* weight) { delete weight; }
void cermet_weight_detach(cermet_weight* weight) {
  if (weight) weight->weight->detach();
}
size_t cermet_weight_bytes(const cermet_weight* weight) {
  return weight ? static_cast<size_t>(weight->weight->bytes()) : 0;
}
