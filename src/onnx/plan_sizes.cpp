// Tensors that follow from sizes, in the head of a plan.
#include "onnx/plan_files.hpp"
#include "op/schema/dim_text.hpp"

namespace cermet::onnx::plan_files {
namespace {

JsonValue texts(const Dims& dims) {
  JsonValue list = JsonValue::array();
  for (const Dim& d : dims) list.push_back(d.to_string());
  return list;
}

Dim dim_in(const Json& field) {
  try {
    return parse_dim(field.as_string());
  } catch (const Error&) {
    field.unexpected("a dimension");
  }
}

Dims dims_in(const Json& field) {
  Dims dims;
  for (const Json d : field.as_array()) dims.push_back(dim_in(d));
  return dims;
}

}  // namespace

DType dtype_in(const Json& field) {
  const auto name = field.as_string();
  for (int i = 0; i < dtype_count; ++i)
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  field.unexpected("an element type");
}

JsonValue written(const SizeTensor& tensor) {
  JsonValue entry{{"dtype", std::string(name_of(tensor.type.dtype))}, {"shape", texts(tensor.type.dims)}};
  if (!tensor.elements.empty()) {
    entry["elements"] = texts(tensor.elements);
    return entry;
  }
  entry["first"] = tensor.counting.first.to_string();
  entry["step"] = tensor.counting.step;
  return entry;
}

SizeTensor read_size_tensor(const Json& field) {
  SizeTensor tensor{.type = {dtype_in(field.at("dtype")), dims_in(field.at("shape"))}, .elements = {}, .counting = {}};
  if (const std::optional<Json> elements = field.find("elements")) {
    tensor.elements = dims_in(*elements);
    const Dim count = tensor.type.elements();
    if (tensor.elements.empty() || count != Dim(static_cast<std::int64_t>(tensor.elements.size())))
      elements->unexpected(fmt::format("{} elements", count.to_string()));
    return tensor;
  }
  if (tensor.type.rank() != 1) field.at("shape").unexpected("one dimension");
  tensor.counting = {dim_in(field.at("first")), tensor.type.dims[0], field.at("step").as_integer()};
  return tensor;
}

}  // namespace cermet::onnx::plan_files
