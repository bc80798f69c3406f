// ONNX models made in tests, through the classes of the file format, and runs of them on the CPU.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/buffer.hpp"
#include "onnx/compiled_model.hpp"

namespace cermet::onnx::test {

using Code = ::onnx::TensorProto::DataType;
using Names = std::vector<std::string>;
using Sizes = std::vector<std::variant<std::int64_t, std::string>>;  ///< numbers, or names of dimensions
using AttributeProto = ::onnx::AttributeProto;

template <class T>
constexpr Code code_of() {
  using P = ::onnx::TensorProto;
  if constexpr (std::is_same_v<T, float>) return P::FLOAT;
  else if constexpr (std::is_same_v<T, double>) return P::DOUBLE;
  else if constexpr (std::is_same_v<T, std::int64_t>) return P::INT64;
  else if constexpr (std::is_same_v<T, std::int32_t>) return P::INT32;
  else if constexpr (std::is_same_v<T, std::int8_t>) return P::INT8;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return P::UINT8;
  else return P::BOOL;
}

/// A tensor with its elements as raw bytes.
template <class T>
::onnx::TensorProto tensor(const std::string& name, const std::vector<std::int64_t>& dims,
                           const std::vector<T>& elements, Code code = code_of<T>()) {
  ::onnx::TensorProto made;
  made.set_name(name);
  made.set_data_type(code);
  for (const std::int64_t d : dims) made.add_dims(d);
  made.set_raw_data(std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)));
  return made;
}

inline ::onnx::TensorProto ints(const std::string& name, const std::vector<std::int64_t>& elements) {
  return tensor(name, {static_cast<std::int64_t>(elements.size())}, elements);
}

AttributeProto attribute(const std::string& name, std::int64_t value);
AttributeProto attribute(const std::string& name, float value);
AttributeProto attribute(const std::string& name, const std::string& value);
AttributeProto attribute(const std::string& name, const std::vector<std::int64_t>& value);
AttributeProto attribute(const std::string& name, const ::onnx::TensorProto& value);
AttributeProto attribute(const std::string& name, const ::onnx::GraphProto& value);
/// In a function: stands for the call's attribute of the same name.
AttributeProto reference(const std::string& name, AttributeProto::AttributeType type);

/// Adds a node to a graph or to a function.
template <class Proto>
::onnx::NodeProto& node(Proto& graph, const std::string& op, const Names& inputs, const Names& outputs,
                        const std::vector<AttributeProto>& attributes = {}) {
  ::onnx::NodeProto& made = *graph.add_node();
  made.set_op_type(op);
  for (const std::string& name : inputs) made.add_input(name);
  for (const std::string& name : outputs) made.add_output(name);
  for (const AttributeProto& a : attributes) *made.add_attribute() = a;
  return made;
}

void input(::onnx::GraphProto& graph, const std::string& name, Code code, const Sizes& dims);
void output(::onnx::GraphProto& graph, const std::string& name);  ///< of a type that the file does not say

::onnx::ModelProto model_of(const ::onnx::GraphProto& graph, std::int64_t opset = 17);

/// A folder of its own for each test, removed with everything in it.
class Folder {
 public:
  Folder();
  ~Folder();
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const ::onnx::ModelProto& model, const std::string& name = "model.onnx") const;
  std::filesystem::path write(const std::string& bytes, const std::string& name) const;

 private:
  std::filesystem::path path_;
};

template <class T>
OwnedTensor owned(const Shape& shape, const std::vector<T>& elements, DType dtype) {
  OwnedTensor made(dtype, shape);
  if (!elements.empty()) std::memcpy(made.view.data, elements.data(), elements.size() * sizeof(T));
  return made;
}
inline OwnedTensor floats(const Shape& shape, const std::vector<float>& elements) {
  return owned(shape, elements, DType::f32);
}
inline OwnedTensor integers(const Shape& shape, const std::vector<std::int64_t>& elements) {
  return owned(shape, elements, DType::i64);
}

/// A model on the CPU with one thread.
class Runner {
 public:
  explicit Runner(const ::onnx::ModelProto& model, std::map<std::string, DimRange> dims = {});
  void run(const std::vector<OwnedTensor>& operands);
  TensorView output(std::size_t i = 0) { return compiled_->host_output(i); }
  CompiledModel& compiled() { return *compiled_; }

 private:
  Folder folder_;
  Context context_;
  std::unique_ptr<CompiledModel> compiled_;
};

template <class T>
std::vector<T> elements(const TensorView& view) {
  const T* first = view.as<const T>();
  return {first, first + view.elements()};
}

}  // namespace cermet::onnx::test
