// ONNX models behind the C ABI: a compiled model, and the caller's tensors as views.
#include "cermet/onnx.h"

#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/dlpack.hpp"
#include "api/guard.hpp"
#include "api/handle.hpp"
#include "api/managed_copy.hpp"
#include "onnx/compiled_model.hpp"

namespace cermet::api {
namespace {

/// What the caller's pointers to a declared value point to.
struct DeclaredValue {
  std::string name;
  std::string_view dtype;
  bool has_dims = false;
  std::vector<std::int64_t> shape;
  std::vector<std::string> names;
  std::vector<const char*> name_pointers;

  explicit DeclaredValue(const onnx::ValueInfo& value) : name(value.name), has_dims(value.dims.has_value()) {
    if (value.dtype) dtype = name_of(*value.dtype);
    for (const onnx::DeclaredDim& d : value.dims.value_or(std::vector<onnx::DeclaredDim>())) {
      shape.push_back(d.value.value_or(-1));
      names.push_back(d.name);
    }
    for (const std::string& n : names) name_pointers.push_back(n.empty() ? nullptr : n.c_str());
  }
  DeclaredValue(const DeclaredValue&) = delete;  // pointers into it
  DeclaredValue& operator=(const DeclaredValue&) = delete;

  cermet_onnx_value get() const {
    return {name.c_str(), dtype.empty() ? nullptr : dtype.data(),
            has_dims ? static_cast<std::int32_t>(shape.size()) : -1, shape.data(), name_pointers.data()};
  }
};

using Values = std::list<DeclaredValue>;

onnx::ModelOptions options_of(const cermet_onnx_range* ranges, std::size_t count) {
  onnx::ModelOptions options;
  if (count > 0) require_pointer(ranges, "ranges");
  for (std::size_t i = 0; i < count; ++i) {
    require_pointer(ranges[i].name, "range: name");
    const bool is_new = options.dims.emplace(ranges[i].name, DimRange{ranges[i].least, ranges[i].greatest}).second;
    require(is_new, "range {}: expected one range, found two", ranges[i].name);
  }
  return options;
}

cermet_onnx_value value_of(const Values& values, std::size_t index, std::string_view what) {
  require(index < values.size(), "{}: expected an index below {}, found {}", what, values.size(), index);
  return std::next(values.begin(), static_cast<std::ptrdiff_t>(index))->get();
}

}  // namespace
}  // namespace cermet::api

struct cermet_onnx {
  std::shared_ptr<cermet::api::Handle> handle;
  std::shared_ptr<const cermet::onnx::Model> file;
  cermet::Context context;  ///< a stream of its own on the handle's device
  cermet::onnx::CompiledModel compiled;
  cermet::api::Values inputs, outputs;
  std::vector<std::vector<std::int64_t>> shapes;  ///< of results that the caller has asked for
  bool has_run = false;

  cermet_onnx(std::shared_ptr<cermet::api::Handle> on, const char* path, cermet::onnx::ModelOptions options)
      : handle(std::move(on)),
        file(std::make_shared<const cermet::onnx::Model>(cermet::onnx::read_model(path))),
        context(handle->context.with_own_stream()),
        compiled(file, context, std::move(options)),
        shapes(file->graph->outputs.size()) {
    for (const cermet::onnx::ValueInfo& value : compiled.inputs()) inputs.emplace_back(value);
    for (const cermet::onnx::ValueInfo& value : file->graph->outputs) outputs.emplace_back(value);
  }

  cermet::TensorView result(std::size_t index, bool on_host) {
    cermet::require(index < shapes.size(), "result: expected an index below {}, found {}", shapes.size(), index);
    if (!context.computes())
      cermet::fail(cermet::Status::unsupported, "result {}: expected a device that computes, found {}", index,
                   context.description());
    cermet::require(has_run, "result {}: expected a run that succeeded, found none", index);
    return on_host ? compiled.host_output(index) : compiled.output(index);
  }

  /// The caller's tensor: dense, in host memory or in the device's.
  cermet::onnx::ModelOperand operand(const DLTensor* tensor, std::size_t i) const {
    const std::string& name = compiled.inputs()[i].name;
    cermet::require(tensor != nullptr, "input '{}': expected a tensor, found none", name);
    const std::optional<cermet::DType> declared = compiled.inputs()[i].dtype,
                                       found = cermet::api::dtype_of(tensor->dtype);
    cermet::require(found.has_value(), "input '{}': expected an element type that Cermet has, found {}", name,
                    cermet::api::text_of(tensor->dtype));
    const bool as_bytes = declared && cermet::size_of(*declared) == 1 && found == cermet::DType::u8;  // bool and fp8
    cermet::require(tensor->ndim >= 0 && tensor->ndim <= cermet::Shape::max_rank,
                    "input '{}': expected at most {} dimensions, found {}", name, cermet::Shape::max_rank,
                    tensor->ndim);
    cermet::TensorType type{as_bytes && *declared != cermet::DType::i8 ? *declared : *found, {}};
    for (int a = 0; a < tensor->ndim; ++a) type.dims.emplace_back(tensor->shape[a]);
    const cermet::TensorView view = cermet::api::checked_view(*tensor, {.op = file->graph->name,
                                                                        .role = "input",
                                                                        .operand = name,
                                                                        .index = i,
                                                                        .type = &type,
                                                                        .dense_dims = type.rank(),
                                                                        .device = handle->memory,
                                                                        .or_host = true,
                                                                        .is_touched = context.computes()});
    return {view, tensor->device.device_type != kDLCPU};
  }
};

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_onnx_open(cermet_handle* handle, const char* path, const cermet_onnx_range* ranges,
                               size_t range_count, cermet_onnx** model) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(path, "path");
    api::require_pointer(model, "model");
    *model = new cermet_onnx(handle->shared, path, api::options_of(ranges, range_count));
  });
}

void cermet_onnx_destroy(cermet_onnx* model) { delete model; }
size_t cermet_onnx_input_count(const cermet_onnx* model) { return model ? model->inputs.size() : 0; }
size_t cermet_onnx_output_count(const cermet_onnx* model) { return model ? model->outputs.size() : 0; }
int64_t cermet_onnx_compiled_count(const cermet_onnx* model) { return model ? model->compiled.compiled_parts() : 0; }

cermet_status cermet_onnx_input(const cermet_onnx* model, size_t index, cermet_onnx_value* value) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_pointer(value, "value");
    *value = api::value_of(model->inputs, index, "input");
  });
}

cermet_status cermet_onnx_output(const cermet_onnx* model, size_t index, cermet_onnx_value* value) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_pointer(value, "value");
    *value = api::value_of(model->outputs, index, "output");
  });
}

cermet_status cermet_onnx_run(cermet_onnx* model, const DLTensor* const* inputs, size_t input_count) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    require(input_count == model->inputs.size(), "inputs: expected {}, found {}", model->inputs.size(), input_count);
    std::vector<onnx::ModelOperand> operands;
    for (std::size_t i = 0; i < input_count; ++i) operands.push_back(model->operand(inputs[i], i));
    model->has_run = false;
    model->compiled.run(operands);
    model->has_run = true;
  });
}

cermet_status cermet_onnx_result(cermet_onnx* model, size_t index, int32_t on_host, DLTensor* result) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_pointer(result, "result");
    const TensorView view = model->result(index, on_host != 0);
    std::vector<std::int64_t>& shape = model->shapes[index];
    shape.assign(view.shape.begin(), view.shape.end());
    const DLDevice device = on_host != 0 ? DLDevice{kDLCPU, 0} : model->handle->memory;
    *result = {view.data, device, view.shape.rank(), api::dl_type_of(view.dtype), shape.data(), nullptr, 0};
  });
}

cermet_status cermet_onnx_result_copy(cermet_onnx* model, size_t index, DLManagedTensor** result) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_pointer(result, "result");
    const TensorView view = model->result(index, true);
    auto copy = std::make_unique<api::ManagedCopy>(view.dtype, view.shape);
    if (view.elements() > 0)
      std::memcpy(copy->data(), view.data, static_cast<std::size_t>(dense_bytes(view.dtype, view.shape)));
    *result = api::ManagedCopy::release(std::move(copy));
  });
}
