#include "tests/onnx/builder.hpp"

#include <unistd.h>

#include <fstream>

#include "base/error.hpp"

namespace cermet::onnx::test {
namespace {

AttributeProto named(const std::string& name, AttributeProto::AttributeType type) {
  AttributeProto made;
  made.set_name(name);
  made.set_type(type);
  return made;
}

}  // namespace

AttributeProto attribute(const std::string& name, std::int64_t value) {
  AttributeProto made = named(name, AttributeProto::INT);
  made.set_i(value);
  return made;
}

AttributeProto attribute(const std::string& name, float value) {
  AttributeProto made = named(name, AttributeProto::FLOAT);
  made.set_f(value);
  return made;
}

AttributeProto attribute(const std::string& name, const std::string& value) {
  AttributeProto made = named(name, AttributeProto::STRING);
  made.set_s(value);
  return made;
}

AttributeProto attribute(const std::string& name, const std::vector<std::int64_t>& value) {
  AttributeProto made = named(name, AttributeProto::INTS);
  for (const std::int64_t v : value) made.add_ints(v);
  return made;
}

AttributeProto attribute(const std::string& name, const ::onnx::TensorProto& value) {
  AttributeProto made = named(name, AttributeProto::TENSOR);
  *made.mutable_t() = value;
  return made;
}

AttributeProto attribute(const std::string& name, const ::onnx::GraphProto& value) {
  AttributeProto made = named(name, AttributeProto::GRAPH);
  *made.mutable_g() = value;
  return made;
}

AttributeProto reference(const std::string& name, AttributeProto::AttributeType type) {
  AttributeProto made = named(name, type);
  made.set_ref_attr_name(name);
  return made;
}

void input(::onnx::GraphProto& graph, const std::string& name, Code code, const Sizes& dims) {
  ::onnx::ValueInfoProto& made = *graph.add_input();
  made.set_name(name);
  auto& type = *made.mutable_type()->mutable_tensor_type();
  type.set_elem_type(code);
  type.mutable_shape();
  for (const auto& d : dims) {
    auto& dim = *type.mutable_shape()->add_dim();
    if (const auto* value = std::get_if<std::int64_t>(&d)) dim.set_dim_value(*value);
    else dim.set_dim_param(std::get<std::string>(d));
  }
}

void output(::onnx::GraphProto& graph, const std::string& name) { graph.add_output()->set_name(name); }

::onnx::ModelProto model_of(const ::onnx::GraphProto& graph, std::int64_t opset) {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  *model.mutable_graph() = graph;
  model.mutable_graph()->set_name("test");
  auto& imported = *model.add_opset_import();
  imported.set_domain("");
  imported.set_version(opset);
  return model;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "cermet_onnx.XXXXXX").string();
  require(mkdtemp(name.data()) != nullptr, "{}: expected a new folder, found none", name);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path Folder::write(const std::string& bytes, const std::string& name) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::filesystem::path Folder::write(const ::onnx::ModelProto& model, const std::string& name) const {
  return write(model.SerializeAsString(), name);
}

Runner::Runner(const ::onnx::ModelProto& model, std::map<std::string, DimRange> dims)
    : context_(ContextOptions{.device = "cpu", .threads = 1}) {
  auto read = std::make_shared<const Model>(read_model(folder_.write(model)));
  compiled_ =
      std::make_unique<CompiledModel>(std::move(read), context_, ModelOptions{.dims = std::move(dims), .skip = {}});
}

void Runner::run(const std::vector<OwnedTensor>& operands) {
  std::vector<TensorView> views;
  for (const OwnedTensor& x : operands) views.push_back(x.view);
  compiled_->run(views);
}

}  // namespace cermet::onnx::test
