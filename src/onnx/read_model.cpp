// From protobuf to a checked model.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "onnx/file_stream.hpp"
#include "onnx/proto_tensor.hpp"
#include "onnx/raw_offsets.hpp"
#include "onnx/unused_strings.hpp"

namespace cermet::onnx {
namespace {

constexpr int most_nested = 32;  ///< graphs within graphs

std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

/// The messages of a field that came after the message's own version.
std::vector<std::string> later_fields(const google::protobuf::UnknownFieldSet& unknown, int number) {
  std::vector<std::string> found;
  for (int i = 0; i < unknown.field_count(); ++i)
    if (const auto& field = unknown.field(i);
        field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      found.push_back(field.length_delimited());
  return found;
}

class Reader {
 public:
  /// `raw` says where the file has elements of the graph's initializers that their messages lack.
  Reader(const std::filesystem::path& path, std::shared_ptr<const PosixFile> file, std::vector<RawData> raw)
      : files_(path), file_(std::move(file)), raw_(std::move(raw)) {}

  std::shared_ptr<const GraphDef> graph(::onnx::GraphProto& proto, int depth) {
    if (depth > most_nested)
      fail(Status::invalid_file, "graph '{}': expected at most {} graphs within each other, found more", proto.name(),
           most_nested);
    auto graph = std::make_shared<GraphDef>();
    graph->name = proto.name();
    if (proto.sparse_initializer_size() > 0)
      fail(Status::unsupported, "graph '{}': sparse initializers are not supported", graph->name);
    const UnusedStrings unused = unused_strings(proto);
    for (auto& tensor : *proto.mutable_initializer()) {
      if (!unused.initializers.contains(tensor.name())) graph->initializers.push_back(initializer(tensor, depth));
      else if (depth == 0) ++next_;
    }
    for (const auto& value : proto.input()) graph->inputs.push_back(value_info(value));
    for (const auto& value : proto.output()) graph->outputs.push_back(value_info(value));
    for (int n = 0; n < proto.node_size(); ++n)
      if (!unused.nodes.contains(n)) graph->nodes.push_back(node(*proto.mutable_node(n), depth));
    return graph;
  }

  FunctionDef function(::onnx::FunctionProto& proto) {
    FunctionDef function{.name = proto.name(),
                         .domain = domain_of(proto.domain()),
                         .inputs = {},
                         .outputs = {},
                         .nodes = {},
                         .opsets = {}};
    for (const auto& name : proto.input()) function.inputs.push_back(name);
    for (const auto& name : proto.output()) function.outputs.push_back(name);
    for (const auto& opset : proto.opset_import()) function.opsets[domain_of(opset.domain())] = opset.version();
    const UnusedStrings unused = unused_strings(proto);
    for (int n = 0; n < proto.node_size(); ++n)
      if (!unused.nodes.contains(n)) function.nodes.push_back(node(*proto.mutable_node(n), 0));
    for (const std::string& bytes : later_fields(proto.unknown_fields(), 11)) {  // attribute_proto
      ::onnx::AttributeProto attribute;
      if (!attribute.ParseFromString(bytes))
        fail(Status::invalid_file, "function '{}': expected an attribute, found bytes that are none", function.name);
      const Node call{.op = function.name,
                      .domain = function.domain,
                      .name = function.name,
                      .inputs = {},
                      .outputs = {},
                      .attributes = {},
                      .references = {}};
      function.defaults[attribute.name()] = this->attribute(attribute, call, 0);
    }
    return function;
  }

  std::int64_t tensor_bytes() const { return tensor_bytes_; }

 private:
  Tensor take(::onnx::TensorProto& proto, const ElementsInFile& elements = {}) {
    Tensor tensor = take_tensor(proto, files_, elements);
    tensor_bytes_ = checked_add(tensor_bytes_, tensor.bytes()).value_or(std::numeric_limits<std::int64_t>::max());
    return tensor;
  }

  /// Large elements of the model's own weights are left in the file.
  Tensor initializer(::onnx::TensorProto& proto, int depth) {
    const std::size_t at = depth == 0 ? next_++ : raw_.size();
    const bool in_file = at < raw_.size() && raw_[at].offset >= 0;
    return in_file ? take(proto, {file_, raw_[at].offset, raw_[at].bytes}) : take(proto);
  }

  ValueInfo value_info(const ::onnx::ValueInfoProto& proto) {
    ValueInfo value{.name = proto.name(), .dtype = {}, .dims = {}};
    const std::string what = "value '" + value.name + "'";
    if (!proto.has_type() || proto.type().value_case() == ::onnx::TypeProto::VALUE_NOT_SET) return value;
    if (!proto.type().has_tensor_type())
      fail(Status::unsupported, "{}: expected a tensor, found a sequence, map, optional or sparse tensor", what);
    const auto& tensor = proto.type().tensor_type();
    if (tensor.elem_type() != 0) value.dtype = dtype_of(tensor.elem_type(), what);
    if (!tensor.has_shape()) return value;
    if (tensor.shape().dim_size() > Shape::max_rank)
      fail(Status::unsupported, "{}: expected at most {} dimensions, found {}", what, Shape::max_rank,
           tensor.shape().dim_size());
    value.dims.emplace();
    for (const auto& dim : tensor.shape().dim()) {
      DeclaredDim& declared = value.dims->emplace_back();
      if (dim.has_dim_value() && dim.dim_value() >= 0) declared.value = dim.dim_value();
      if (dim.dim_param() != "?")
        declared.name = dim.dim_param();  // some exporters write it for every size that they do not know
    }
    return value;
  }

  Node node(::onnx::NodeProto& proto, int depth) {
    Node node{.op = proto.op_type(),
              .domain = domain_of(proto.domain()),
              .name = proto.name(),
              .inputs = {},
              .outputs = {},
              .attributes = {},
              .references = {}};
    for (const auto& name : proto.input()) node.inputs.push_back(name);
    for (const auto& name : proto.output()) node.outputs.push_back(name);
    if (node.name.empty() && !node.outputs.empty()) node.name = node.outputs.front();
    for (auto& attribute : *proto.mutable_attribute()) {
      if (!attribute.ref_attr_name().empty()) node.references[attribute.name()] = attribute.ref_attr_name();
      else if (!node.attributes.emplace(attribute.name(), this->attribute(attribute, node, depth)).second)
        fail(Status::invalid_file, "node '{}' ({}): attribute '{}' is given twice", node.name, node.op,
             attribute.name());
    }
    return node;
  }

  Attribute attribute(::onnx::AttributeProto& proto, const Node& node, int depth) {
    switch (kind_of(proto)) {
      case ::onnx::AttributeProto::INT: return proto.i();
      case ::onnx::AttributeProto::FLOAT: return static_cast<double>(proto.f());
      case ::onnx::AttributeProto::STRING: return proto.s();
      case ::onnx::AttributeProto::INTS: return std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end());
      case ::onnx::AttributeProto::FLOATS: return std::vector<double>(proto.floats().begin(), proto.floats().end());
      case ::onnx::AttributeProto::STRINGS:
        return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
      case ::onnx::AttributeProto::TENSOR: return take(*proto.mutable_t());
      case ::onnx::AttributeProto::GRAPH: return graph(*proto.mutable_g(), depth + 1);
      default:
        fail(Status::unsupported,
             "node '{}' ({}): attribute '{}': lists of tensors or graphs, sparse tensors and types are not supported",
             node.name, node.op, proto.name());
    }
  }

  /// Files of the first versions do not say the kind.
  static ::onnx::AttributeProto::AttributeType kind_of(const ::onnx::AttributeProto& proto) {
    using P = ::onnx::AttributeProto;
    if (proto.type() != P::UNDEFINED) return proto.type();
    if (proto.has_f()) return P::FLOAT;
    if (proto.has_i()) return P::INT;
    if (proto.has_s()) return P::STRING;
    if (proto.has_t()) return P::TENSOR;
    if (proto.has_g()) return P::GRAPH;
    if (proto.floats_size() > 0) return P::FLOATS;
    return proto.strings_size() > 0 ? P::STRINGS : P::INTS;
  }

  ExternalFiles files_;
  std::shared_ptr<const PosixFile> file_;
  std::vector<RawData> raw_;
  std::size_t next_ = 0;
  std::int64_t tensor_bytes_ = 0;
};

/// Every name is made once, and read after it was made. Names of enclosing graphs are visible.
void check_names(const GraphDef& graph, const std::vector<const std::unordered_set<std::string>*>& outer);

void check_nodes(const std::string& where, const std::vector<Node>& nodes, std::unordered_set<std::string>& made,
                 const std::vector<const std::unordered_set<std::string>*>& outer) {
  const auto is_made = [&](const std::string& name) {
    return made.contains(name) || std::ranges::any_of(outer, [&](const auto* names) { return names->contains(name); });
  };
  for (const Node& node : nodes) {
    for (const std::string& name : node.inputs)
      if (!name.empty() && !is_made(name))
        fail(Status::invalid_file,
             "{}: node '{}' ({}) reads '{}': expected a value that an earlier node, an input or an initializer makes, "
             "found none",
             where, node.name, node.op, name);
    std::vector<const std::unordered_set<std::string>*> inner = outer;
    inner.push_back(&made);
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* graph = std::get_if<std::shared_ptr<const GraphDef>>(&attribute)) check_names(**graph, inner);
    for (const std::string& name : node.outputs)
      if (!name.empty() && !made.insert(name).second)
        fail(Status::invalid_file, "{}: node '{}' ({}): result '{}' is made twice", where, node.name, node.op, name);
  }
}

void check_names(const GraphDef& graph, const std::vector<const std::unordered_set<std::string>*>& outer) {
  const std::string where = fmt::format("graph '{}'", graph.name);
  std::unordered_set<std::string> made;
  for (const ValueInfo& input : graph.inputs)
    if (!made.insert(input.name).second)
      fail(Status::invalid_file, "{}: input '{}' is declared twice", where, input.name);
  std::unordered_set<std::string> given;
  for (const Tensor& tensor : graph.initializers)
    if (!given.insert(tensor.name()).second)
      fail(Status::invalid_file, "{}: initializer '{}' is given twice", where, tensor.name());
  made.insert(given.begin(), given.end());  // an input may have one, as its default
  check_nodes(where, graph.nodes, made, outer);
  for (const ValueInfo& output : graph.outputs) {
    const bool outside = std::ranges::any_of(outer, [&](const auto* names) { return names->contains(output.name); });
    if (!made.contains(output.name) && !outside)
      fail(Status::invalid_file, "{}: result '{}': expected a value of the graph, found none", where, output.name);
  }
}

bool parse(google::protobuf::io::CodedInputStream& input, ::onnx::ModelProto& proto) {
  input.SetRecursionLimit(200);
  return proto.ParsePartialFromCodedStream(&input) && input.ConsumedEntireMessage();
}

/// Gives what was left in the file. A file that is laid out in another way is read as a whole.
std::vector<RawData> parse(const PosixFile& file, ::onnx::ModelProto& proto) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;  // protobuf's limit
  if (file.stamp().bytes > most)
    fail(Status::invalid_file,
         "expected at most 2 GiB, as ONNX has it, found {} bytes; larger weights are in files beside it",
         file.stamp().bytes);
  google::protobuf::LogSilencer quiet;
  if (std::optional<ThinModel> thin = read_thin_model(file)) {
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(thin->bytes.data()),
                                                 static_cast<int>(thin->bytes.size()));
    if (parse(input, proto)) return std::move(thin->raw);
    proto.Clear();
  }
  FileStream stream(file);
  google::protobuf::io::CopyingInputStreamAdaptor adaptor(&stream, 1 << 20);
  google::protobuf::io::CodedInputStream input(&adaptor);
  if (!parse(input, proto))
    fail(Status::invalid_file, "expected an ONNX model (protobuf), found bytes that are none at {}",
         input.CurrentPosition());
  return {};
}

}  // namespace

Model read_model(const std::filesystem::path& path) try {
  const auto file = std::make_shared<const PosixFile>(PosixFile::open_for_reading(path));
  ::onnx::ModelProto proto;
  std::vector<RawData> raw = parse(*file, proto);
  if (!proto.has_graph()) fail(Status::invalid_file, "expected a model with a graph, found none");
  Model model;
  model.path = path;
  model.producer = proto.producer_name() + (proto.producer_version().empty() ? "" : " ") + proto.producer_version();
  model.ir_version = proto.ir_version();
  for (const auto& opset : proto.opset_import()) model.opsets[domain_of(opset.domain())] = opset.version();
  if (!model.opsets.contains("")) model.opsets[""] = 1;
  Reader reader(path, file, std::move(raw));
  model.graph = reader.graph(*proto.mutable_graph(), 0);
  for (auto& function : *proto.mutable_functions()) model.functions.push_back(reader.function(function));
  model.tensor_bytes = reader.tensor_bytes();
  check_names(*model.graph, {});
  for (const FunctionDef& f : model.functions) {
    std::unordered_set<std::string> made(f.inputs.begin(), f.inputs.end());
    check_nodes(fmt::format("function '{}'", f.name), f.nodes, made, {});
    for (const std::string& name : f.outputs)
      if (!made.contains(name))
        fail(Status::invalid_file, "function '{}': result '{}': expected a value of the function, found none", f.name,
             name);
  }
  return model;
} catch (const Error& error) {
  const std::string message = error.what(), prefix = path.string() + ": ";
  throw Error(error.status(), message.starts_with(prefix) ? message : prefix + message);
}

}  // namespace cermet::onnx
