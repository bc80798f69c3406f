// The C functions of operators by name.
#include "cermet/get_op.h"

#include <algorithm>

#include "api/callable.hpp"
#include "api/guard.hpp"
#include "api/options.hpp"
#include "op/schema/operator.hpp"

namespace cermet::api {
namespace {

cermet_get_op_options get_op_defaults() {
  return {sizeof(cermet_get_op_options), nullptr, nullptr, 0, nullptr, nullptr};
}

/// The operator that takes a call with these inputs, and these as it takes them.
Callable::Taken take(cermet_callable* callable, const DLTensor* const* inputs, size_t input_count) {
  require_pointer(callable, "callable");
  if (input_count > 0) require_pointer(inputs, "inputs");
  return callable->callable.take({inputs, input_count});
}

cermet_call_result result_of(const Callable::Taken& taken, std::size_t index) {
  Operator& op = taken.op;
  const Problem& p = op.problem();
  require(index < p.outputs.size(), "{}: output: expected an index below {}, found {}", p.op->name, p.outputs.size(),
          index);
  const DType dtype = p.outputs[index].dtype;
  const Shape& shape = op.next_output_shape(index, taken.inputs);
  cermet_call_result result{
      name_of(dtype).data(), dl_type_of(dtype), shape.rank(), op.alias(index), {}};  // the names are string literals
  std::ranges::copy(shape, result.shape);
  return result;
}

}  // namespace
}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

void cermet_get_op_options_init(cermet_get_op_options* options, size_t struct_size) {
  api::init_options(options, struct_size, api::get_op_defaults);
}

cermet_status cermet_get_op(cermet_handle* handle, const char* name, const DLTensor* const* inputs, size_t input_count,
                            const cermet_attribute* attributes, size_t attribute_count,
                            const cermet_get_op_options* options, cermet_callable** callable) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(name, "name");
    api::require_pointer(callable, "callable");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (attribute_count > 0) api::require_pointer(attributes, "attributes");
    const cermet_get_op_options taken = api::filled(options, api::get_op_defaults, "cermet_get_op_options");
    *callable = new cermet_callable{
        api::Callable(handle->shared, name, {inputs, input_count}, {attributes, attribute_count}, taken), {}};
  });
}

void cermet_callable_destroy(cermet_callable* callable) { delete callable; }

cermet_status cermet_call(cermet_callable* callable, const DLTensor* const* inputs, size_t input_count,
                          DLTensor* const* outputs, size_t output_count, void* stream) {
  return api::guarded([&] {
    api::require_pointer(callable, "callable");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (output_count > 0) api::require_pointer(outputs, "outputs");
    callable->callable.call({inputs, input_count}, {outputs, output_count}, stream);
  });
}

cermet_status cermet_call_output_count(cermet_callable* callable, const DLTensor* const* inputs, size_t input_count,
                                       size_t* count) {
  return api::guarded([&] {
    api::require_pointer(count, "count");
    *count = api::take(callable, inputs, input_count).op.problem().outputs.size();
  });
}

cermet_status cermet_call_output(cermet_callable* callable, const DLTensor* const* inputs, size_t input_count,
                                 size_t index, cermet_call_result* result) {
  return api::guarded([&] {
    api::require_pointer(result, "result");
    *result = api::result_of(api::take(callable, inputs, input_count), index);
  });
}

cermet_status cermet_call_dense_dims(cermet_callable* callable, const DLTensor* const* inputs, size_t input_count,
                                     int32_t* count) {
  return api::guarded([&] {
    api::require_pointer(count, "count");
    *count = dense_dims_of(api::take(callable, inputs, input_count).op.problem());
  });
}

const char* cermet_callable_kernel(const cermet_callable* callable) {
  return callable ? callable->callable.last().kernel().name.c_str() : "";
}

const char* cermet_callable_config(const cermet_callable* callable) {
  if (!callable) return "";
  const char* text = "";
  api::guarded([&] { text = (callable->config_text = callable->callable.last().config().to_string()).c_str(); });
  return text;
}

size_t cermet_callable_bound_count(const cermet_callable* callable) {
  return callable ? callable->callable.bound_count() : 0;
}
