// The C functions of operators.
#include <algorithm>

#include "api/guard.hpp"
#include "api/op.hpp"

namespace cermet::api {
namespace {

void require_output(const Operator& op, std::size_t index) {
  const std::size_t count = op.problem().outputs.size();
  require(index < count, "{}: output: expected an index below {}, found {}", op.problem().op->name, count, index);
}

}  // namespace
}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_op_create(cermet_handle* handle, const char* name, const cermet_descriptor* inputs,
                               size_t input_count, const cermet_attribute* attributes, size_t attribute_count,
                               cermet_op** op) {
  return cermet_op_create_ranged(handle, name, inputs, input_count, attributes, attribute_count, nullptr, 0, op);
}

cermet_status cermet_op_create_ranged(cermet_handle* handle, const char* name, const cermet_descriptor* inputs,
                                      size_t input_count, const cermet_attribute* attributes, size_t attribute_count,
                                      const cermet_range* ranges, size_t range_count, cermet_op** op) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(name, "name");
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (attribute_count > 0) api::require_pointer(attributes, "attributes");
    if (range_count > 0) api::require_pointer(ranges, "ranges");
    *op = new cermet_op{api::Operator(handle->shared, name, {inputs, input_count}, {attributes, attribute_count},
                                      {ranges, range_count})};
  });
}

void cermet_op_destroy(cermet_op* op) { delete op; }
size_t cermet_op_output_count(const cermet_op* op) { return op ? op->op.problem().outputs.size() : 0; }
const char* cermet_op_kernel(const cermet_op* op) {
  return op ? op->op.kernel().name.data() : "";
}  // names are string literals
size_t cermet_op_workspace_size(const cermet_op* op) { return op ? static_cast<size_t>(op->op.workspace_bytes()) : 0; }
int32_t cermet_op_output_alias(const cermet_op* op, size_t index) {
  return op && index < op->op.problem().outputs.size() ? op->op.alias(index) : -1;
}

cermet_status cermet_op_output(const cermet_op* op, size_t index, cermet_descriptor* output) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    api::require_pointer(output, "output");
    api::require_output(op->op, index);
    *output = op->op.output(index);
  });
}

cermet_status cermet_op_output_shape(const cermet_op* op, size_t index, const DLTensor* const* inputs,
                                     size_t input_count, int64_t* shape) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    api::require_pointer(shape, "shape");
    api::require_output(op->op, index);
    std::ranges::copy(op->op.output_shape(index, {inputs, input_count}), shape);
  });
}

cermet_status cermet_op_set_constant(cermet_op* op, size_t input, const DLTensor* tensor) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    api::require_pointer(tensor, "tensor");
    op->op.set_constant(input, *tensor);
  });
}

cermet_status cermet_op_set_weight(cermet_op* op, size_t input, cermet_weight* weight) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    api::require_pointer(weight, "weight");
    op->op.set_weight(input, weight->weight);
  });
}

cermet_status cermet_op_run(cermet_op* op, const DLTensor* const* inputs, size_t input_count, DLTensor* const* outputs,
                            size_t output_count, void* workspace, size_t workspace_size, void* stream) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (output_count > 0) api::require_pointer(outputs, "outputs");
    op->op.run({inputs, input_count}, {outputs, output_count}, workspace, workspace_size, stream);
  });
}

cermet_status cermet_op_run_pointers(cermet_op* op, const void* const* inputs, size_t input_count, void* const* outputs,
                                     size_t output_count, void* workspace, size_t workspace_size, void* stream) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (output_count > 0) api::require_pointer(outputs, "outputs");
    op->op.run_pointers({inputs, input_count}, {outputs, output_count}, workspace, workspace_size, stream);
  });
}
