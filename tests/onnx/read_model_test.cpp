// What a file must be before anything is made of it. Every message names the file, and what in it is wrong.
#include <gtest/gtest.h>

#include <span>

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using ::testing::Test;
using P = ::onnx::TensorProto;

/// y = x + w.
::onnx::GraphProto sum() {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  *graph.add_initializer() = tensor<float>("w", {2}, {1, 2});
  node(graph, "Add", {"x", "w"}, {"y"});
  output(graph, "y");
  return graph;
}

class ReadModel : public Test {
 protected:
  /// What reading says, without the file's name.
  std::string text(const ::onnx::ModelProto& model) { return text(folder_.write(model)); }
  std::string text(const ::onnx::GraphProto& graph) { return text(model_of(graph)); }
  std::string text(const std::filesystem::path& path) {
    std::string message = error_text([&] { read_model(path); });
    if (const std::string prefix = path.string() + ": "; message.starts_with(prefix)) message.erase(0, prefix.size());
    else if (message != "no error") message.insert(0, "without the file's name: ");
    return message;
  }
  std::string text_of_initializer(const P& initializer) {
    ::onnx::GraphProto graph = sum();
    *graph.mutable_initializer(0) = initializer;
    return text(graph);
  }
  std::string text_of_location(const std::string& location, std::int64_t bytes = 8) {
    P external = tensor<float>("w", {bytes / 4}, {});
    external.clear_raw_data();
    external.set_data_location(P::EXTERNAL);
    auto& entry = *external.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
    return text_of_initializer(external);
  }
  Folder folder_;
};

TEST_F(ReadModel, KeepsNamesTypesAndOpsets) {
  ::onnx::GraphProto graph = sum();
  input(graph, "z", P::INT64, {"batch", 3, "sequence"});
  node(graph, "Custom", {"z"}, {"unused"}, {attribute("k", std::int64_t{7})}).set_domain("my.domain");
  ::onnx::ModelProto proto = model_of(graph, 19);
  auto& other = *proto.add_opset_import();
  other.set_domain("my.domain");
  other.set_version(2);
  proto.set_producer_name("maker");
  proto.set_producer_version("1.2");
  const Model model = read_model(folder_.write(proto));
  EXPECT_EQ(model.producer, "maker 1.2");
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.opsets, (std::map<std::string, std::int64_t>{{"", 19}, {"my.domain", 2}}));
  ASSERT_EQ(model.graph->inputs.size(), 2u);
  EXPECT_EQ(model.graph->inputs[0].dtype, DType::f32);
  const ValueInfo& z = model.graph->inputs[1];
  EXPECT_EQ(z.dtype, DType::i64);
  ASSERT_EQ(z.dims->size(), 3u);
  EXPECT_EQ((*z.dims)[0].name, "batch");
  EXPECT_EQ((*z.dims)[1].value, 3);
  EXPECT_FALSE(model.graph->outputs[0].dtype);
  EXPECT_EQ(model.graph->initializers[0].type().to_string(), "f32[2]");
  EXPECT_EQ(model.graph->nodes[0].name, "y") << "a node without a name has its first result's";
  EXPECT_EQ(std::get<std::int64_t>(model.graph->nodes[1].attributes.at("k")), 7);
}

TEST_F(ReadModel, RefusesNodesThatReadWhatIsNotMadeYet) {
  ::onnx::GraphProto graph = sum();
  graph.mutable_node(0)->set_input(0, "later");
  node(graph, "Relu", {"y"}, {"later"});
  EXPECT_EQ(text(graph),
            "graph 'test': node 'y' (Add) reads 'later': expected a value that an earlier node, an input or an "
            "initializer makes, found none");
}

TEST_F(ReadModel, RefusesValuesMadeTwice) {
  ::onnx::GraphProto graph = sum();
  node(graph, "Relu", {"x"}, {"y"});
  EXPECT_EQ(text(graph), "graph 'test': node 'y' (Relu): result 'y' is made twice");
  graph = sum();
  input(graph, "x", P::FLOAT, {2});
  EXPECT_EQ(text(graph), "graph 'test': input 'x' is declared twice");
  graph = sum();
  *graph.add_initializer() = tensor<float>("w", {2}, {1, 2});
  EXPECT_EQ(text(graph), "graph 'test': initializer 'w' is given twice");
}

TEST_F(ReadModel, RefusesResultsThatNothingMakes) {
  ::onnx::GraphProto graph = sum();
  output(graph, "z");
  EXPECT_EQ(text(graph), "graph 'test': result 'z': expected a value of the graph, found none");
}

TEST_F(ReadModel, RefusesAttributesGivenTwice) {
  ::onnx::GraphProto graph = sum();
  *graph.mutable_node(0)->add_attribute() = attribute("a", std::int64_t{1});
  *graph.mutable_node(0)->add_attribute() = attribute("a", std::int64_t{2});
  EXPECT_EQ(text(graph), "node 'y' (Add): attribute 'a' is given twice");
}

TEST_F(ReadModel, RefusesTensorsWhoseBytesAreNotTheirTypes) {
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {3}, {1, 2})), "tensor 'w': expected 12 bytes for f32[3], found 8");
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {-2}, {1, 2})),
            "tensor 'w': expected non-negative dimensions, found -2");
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {1, 1, 1, 1, 1, 1, 1, 1, 2}, {1, 2})),
            "tensor 'w': expected at most 8 dimensions, found 9");
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {huge}, {1, 2})),
            "tensor 'w': expected 4398046511104 bytes for f32[1099511627776], found 8");
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {huge, huge}, {1, 2})),
            "tensor f32[1099511627776, 1099511627776]: expected fewer than 2^63 bytes");
  P listed;
  listed.set_name("w");
  listed.set_data_type(P::FLOAT);
  listed.add_dims(2);
  listed.add_float_data(1);
  EXPECT_EQ(text_of_initializer(listed), "tensor 'w': expected 8 bytes for f32[2], found 4");
  listed.add_float_data(1);
  EXPECT_EQ(text_of_initializer(listed), "no error");
}

TEST_F(ReadModel, RefusesElementTypesThatNothingTakes) {
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {2}, {1, 2}, P::STRING)),
            "tensor 'w': element type string is not supported");
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {1}, {1, 2}, P::COMPLEX64)),
            "tensor 'w': element type complex64 is not supported");
  EXPECT_EQ(text_of_initializer(tensor<float>("w", {2}, {1, 2}, P::UNDEFINED)),
            "tensor 'w': expected an element type, found number 0");
  ::onnx::GraphProto graph = sum();
  input(graph, "s", P::STRING, {1});
  EXPECT_EQ(text(graph), "value 's': element type string is not supported");
  graph = sum();
  graph.mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_EQ(text(graph), "value 'x': expected a tensor, found a sequence, map, optional or sparse tensor");
}

TEST_F(ReadModel, RefusesWhatNothingTakes) {
  ::onnx::GraphProto graph = sum();
  graph.add_sparse_initializer();
  EXPECT_EQ(text(graph), "graph 'test': sparse initializers are not supported");
  graph = sum();
  AttributeProto list;
  list.set_name("all");
  list.set_type(AttributeProto::TENSORS);
  *graph.mutable_node(0)->add_attribute() = list;
  EXPECT_EQ(text(graph),
            "node 'y' (Add): attribute 'all': lists of tensors or graphs, sparse tensors and types are not supported");
  P part = tensor<float>("w", {2}, {1, 2});
  part.mutable_segment()->set_begin(0);
  EXPECT_EQ(text_of_initializer(part), "tensor 'w': tensors in segments are not supported");
}

TEST_F(ReadModel, ReadsExternalDataBelowTheModelsFolder) {
  const std::vector<float> values{5, 6};
  folder_.write(std::string(reinterpret_cast<const char*>(values.data()), 8), "w.bin");
  EXPECT_EQ(text_of_location("w.bin"), "no error");
  const Model model = read_model(folder_.path() / "model.onnx");
  const TensorData data = model.graph->initializers[0].data();
  EXPECT_EQ(std::memcmp(data.bytes().data(), values.data(), 8), 0);
  EXPECT_EQ(text_of_location("w.bin", 12), "tensor 'w': expected 12 bytes at 0 of " +
                                               (std::filesystem::canonical(folder_.path()) / "w.bin").string() +
                                               ", found a file of 8");
}

TEST_F(ReadModel, RefusesExternalDataThatIsMissingOrElsewhere) {
  EXPECT_NE(text_of_location("missing.bin").find("missing.bin"), std::string::npos);
  EXPECT_NE(text_of_location("missing.bin"), "no error");
  for (const char* location : {"/etc/passwd", "../w.bin", "a/../../w.bin", ""})
    EXPECT_EQ(
        text_of_location(location),
        std::string("tensor 'w': expected data in a file below the model's folder, found location '") + location + "'");
  const Folder outside;
  outside.write(std::string(8, 'a'), "w.bin");
  std::filesystem::create_symlink(outside.path() / "w.bin", folder_.path() / "link.bin");
  EXPECT_EQ(text_of_location("link.bin"),
            "tensor 'w': expected data in a file below the model's folder, found a link to " +
                (std::filesystem::canonical(outside.path()) / "w.bin").string());
  std::filesystem::create_directory(folder_.path() / "folder");
  EXPECT_NE(text_of_location("folder"), "no error");
}

TEST_F(ReadModel, RefusesNumbersOfExternalDataThatAreNone) {
  folder_.write(std::string(8, 'a'), "w.bin");
  for (const auto& [key, value, expected] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"offset", "-1", "tensor 'w': offset: expected a number of bytes, found '-1'"},
           {"offset", "9223372036854775808",
            "tensor 'w': offset: expected a number of bytes, found '9223372036854775808'"},
           {"length", "4", "tensor 'w': expected 8 bytes for f32[2], found length 4"}}) {
    P external = tensor<float>("w", {2}, {});
    external.clear_raw_data();
    external.set_data_location(P::EXTERNAL);
    for (const auto& [k, v] : std::vector<std::pair<std::string, std::string>>{{"location", "w.bin"}, {key, value}}) {
      auto& entry = *external.add_external_data();
      entry.set_key(k);
      entry.set_value(v);
    }
    EXPECT_EQ(text_of_initializer(external), expected);
  }
}

TEST_F(ReadModel, RefusesClaimsOfMoreBytesThanTheFileHas) {
  // A field of raw bytes that says it is 2 GiB long, in a file of a few bytes.
  const std::string claim{"\x3a\xff\xff\xff\xff\x07", 6};
  EXPECT_NE(
      text(folder_.write(claim, "claim.onnx")).find("expected an ONNX model (protobuf), found bytes that are none"),
      std::string::npos);
}

TEST_F(ReadModel, RefusesFilesThatEndEarly) {
  const std::string whole = model_of(sum()).SerializeAsString();
  int refused = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string message = text(folder_.write(whole.substr(0, length), "short.onnx"));
    refused += message != "no error";
    EXPECT_EQ(message.find("without the file's name"), std::string::npos) << message;
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) - 16) << "only a cut between fields at the end leaves a model";
  EXPECT_EQ(text(folder_.write("", "empty.onnx")), "expected a model with a graph, found none");
}

/// Their messages are read without them: the elements, the checks and the errors are those of small weights.
TEST_F(ReadModel, ReadsLargeWeights) {
  std::vector<float> elements(40000);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i);
  const std::vector<std::vector<float>> lists{
      elements, {elements.begin(), elements.begin() + 100}, {elements.begin() + 7, elements.begin() + 30007}};
  ::onnx::GraphProto graph = sum();
  for (std::size_t i = 0; i < lists.size(); ++i)
    *graph.add_initializer() =
        tensor<float>("weight " + std::to_string(i), {static_cast<std::int64_t>(lists[i].size())}, lists[i]);
  *graph.add_initializer() = ints("after", {5, 6});
  const std::string whole = model_of(graph).SerializeAsString();
  const Model model = read_model(folder_.write(whole, "large.onnx"));
  ASSERT_EQ(model.graph->initializers.size(), 5u);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const Tensor& found = model.graph->initializers[i + 1];
    std::vector<float> read(lists[i].size());
    ASSERT_EQ(found.bytes(), static_cast<std::int64_t>(read.size() * sizeof(float)));
    found.read(std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, lists[i]) << found.name();
  }
  for (const std::size_t length : {whole.size() / 4, whole.size() / 2, whole.size() * 3 / 4})
    EXPECT_NE(text(folder_.write(whole.substr(0, length), "short.onnx"))
                  .find("expected an ONNX model (protobuf), found bytes that are none"),
              std::string::npos);
  graph.mutable_initializer(3)->add_dims(2);
  EXPECT_EQ(text(graph), "tensor 'weight 2': expected 240000 bytes for f32[30000, 2], found 120000");
}

/// A model with an If whose branches hold another, and so on.
::onnx::GraphProto nested(int depth) {
  ::onnx::GraphProto leaf, graph;
  node(leaf, "Identity", {"x"}, {"y"});
  output(leaf, "y");
  graph = leaf;
  for (int i = 0; i < depth; ++i) {
    ::onnx::GraphProto outer;
    node(outer, "If", {"c"}, {"y"}, {attribute("then_branch", graph), attribute("else_branch", leaf)});
    output(outer, "y");
    graph = outer;
  }
  input(graph, "x", P::FLOAT, {2});
  input(graph, "c", P::BOOL, {});
  return graph;
}

TEST_F(ReadModel, RefusesDeepNesting) {
  EXPECT_EQ(text(nested(32)), "no error");
  EXPECT_EQ(text(nested(33)), "graph '': expected at most 32 graphs within each other, found more");
  EXPECT_NE(text(nested(100)).find("expected an ONNX model (protobuf), found bytes that are none"), std::string::npos);
}

TEST_F(ReadModel, RefusesFunctionsWithoutTheirResults) {
  ::onnx::ModelProto model = model_of(sum());
  auto& function = *model.add_functions();
  function.set_name("F");
  function.set_domain("my");
  function.add_output("nothing");
  EXPECT_EQ(text(model), "function 'F': result 'nothing': expected a value of the function, found none");
}

}  // namespace
}  // namespace cermet::onnx::test
