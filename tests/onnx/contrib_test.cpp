// Operators of com.microsoft and ai.onnx.ml against the results of onnxruntime, which tools/make_contrib_cases.py
// wrote.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.hpp"
#include "op/schema/reference.hpp"

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

struct ContribCase {
  std::string name;
  ::onnx::ModelProto model;
  std::vector<OwnedTensor> inputs, expected;
  double tolerance = 0;
  std::int64_t units = 0;
};

DType dtype_of_proto(int code) {
  switch (code) {
    case P::FLOAT: return DType::f32;
    case P::DOUBLE: return DType::f64;
    case P::FLOAT16: return DType::f16;
    case P::INT64: return DType::i64;
    case P::INT32: return DType::i32;
    case P::INT16: return DType::i16;
    case P::UINT16: return DType::u16;
    case P::INT8: return DType::i8;
    case P::UINT8: return DType::u8;
    default: return DType::boolean;
  }
}

OwnedTensor owned_tensor(const ::onnx::TensorProto& proto) {
  Shape shape;
  for (const std::int64_t d : proto.dims()) shape.push_back(d);
  OwnedTensor made(dtype_of_proto(proto.data_type()), shape);
  EXPECT_EQ(proto.raw_data().size(), static_cast<std::size_t>(dense_bytes(made.view.dtype, shape)));
  std::memcpy(made.view.data, proto.raw_data().data(), proto.raw_data().size());
  return made;
}

ContribCase contrib_case(const ::onnx::NodeProto& node) {
  ContribCase c;
  c.name = node.name();
  for (const auto& a : node.attribute()) {
    if (a.name() == "graph") *c.model.mutable_graph() = a.g();
    if (a.name() == "inputs")
      for (const auto& t : a.tensors()) c.inputs.push_back(owned_tensor(t));
    if (a.name() == "expected")
      for (const auto& t : a.tensors()) c.expected.push_back(owned_tensor(t));
    if (a.name() == "tolerance") c.tolerance = static_cast<double>(a.f());
    if (a.name() == "units") c.units = a.i();
    if (a.name() != "opset") continue;
    const char* const domains[] = {"", "ai.onnx.ml"};
    for (int i = 0; i < 2; ++i) {
      auto& opset = *c.model.add_opset_import();
      opset.set_domain(domains[i]);
      opset.set_version(a.ints(i));
    }
  }
  auto& own = *c.model.add_opset_import();
  own.set_domain("com.microsoft");
  own.set_version(1);
  c.model.set_ir_version(10);
  return c;
}

std::vector<ContribCase> cases_of(const std::string& family) {
  std::ifstream file(CERMET_SOURCE_DIR "/tests/onnx/cases/contrib/" + family + ".onnx", std::ios::binary);
  ::onnx::ModelProto pack;
  EXPECT_TRUE(file && pack.ParseFromIstream(&file)) << family;
  std::vector<ContribCase> cases;
  for (const auto& node : pack.graph().node()) cases.push_back(contrib_case(node));
  return cases;
}

/// What is wrong with a result; nothing where it is near enough.
std::string difference(const TensorView& got, const TensorView& wanted, double tolerance, std::int64_t units) {
  if (got.dtype != wanted.dtype || !(got.shape == wanted.shape))
    return fmt::format("{} elements of {}, not {} of {}", got.elements(), name_of(got.dtype), wanted.elements(),
                       name_of(wanted.dtype));
  double largest = 1;
  for (std::int64_t i = 0; i < wanted.elements(); ++i)
    if (const double value = std::abs(load(wanted, i)); std::isfinite(value)) largest = std::max(largest, value);
  const double allowed = is_floating(wanted.dtype) ? tolerance * largest : static_cast<double>(units);
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    const double a = load(got, i), b = load(wanted, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a != b && !(std::abs(a - b) <= allowed)) return fmt::format("element {} is {}, not {}", i, a, b);
  }
  return {};
}

class Contrib : public testing::TestWithParam<const char*> {};

TEST_P(Contrib, AgreesWithOnnxruntime) {
  const std::vector<ContribCase> cases = cases_of(GetParam());
  EXPECT_FALSE(cases.empty());
  for (const ContribCase& c : cases) {
    SCOPED_TRACE(c.name);
    try {
      Runner runner(c.model);
      std::vector<OwnedTensor> operands;
      for (const OwnedTensor& x : c.inputs) {
        OwnedTensor copy(x.view.dtype, x.view.shape);
        std::memcpy(copy.view.data, x.view.data, static_cast<std::size_t>(dense_bytes(x.view.dtype, x.view.shape)));
        operands.push_back(std::move(copy));
      }
      runner.run(operands);
      for (std::size_t o = 0; o < c.expected.size(); ++o)
        EXPECT_EQ(difference(runner.output(o), c.expected[o].view, c.tolerance, c.units), "") << "result " << o;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

/// What importing one node of an operator says: operands of float32 [4, 4], attributes as given.
std::string refusal_of(const std::string& op, const std::string& domain, std::size_t operands,
                       const std::vector<AttributeProto>& attributes) {
  ::onnx::GraphProto graph;
  Names names;
  for (std::size_t i = 0; i < operands; ++i) {
    names.push_back("x" + std::to_string(i));
    input(graph, names.back(), P::FLOAT, {4, 4});
  }
  node(graph, op, names, {"y"}, attributes).set_domain(domain);
  output(graph, "y");
  ::onnx::ModelProto model = model_of(graph);
  for (const auto& [name, version] : {std::pair{"com.microsoft", 1}, std::pair{"ai.onnx.ml", 3}}) {
    auto& opset = *model.add_opset_import();
    opset.set_domain(name);
    opset.set_version(version);
  }
  return error_text([&] {
    Runner runner(model);
    std::vector<OwnedTensor> values;
    for (std::size_t i = 0; i < operands; ++i) values.push_back(floats({4, 4}, std::vector<float>(16)));
    runner.run(values);
  });
}

AttributeProto strings_attribute(const std::string& name) {
  AttributeProto made;
  made.set_name(name);
  made.set_type(AttributeProto::STRINGS);
  made.add_strings("a");
  made.add_strings("b");
  return made;
}

TEST(ContribRefusals, NameTheAttributeAndTheReason) {
  const auto one = [](const std::string& name) { return attribute(name, std::int64_t{1}); };
  const auto heads = attribute("num_heads", std::int64_t{2});
  const struct {
    std::string found, expected;
  } cases[] = {
      {refusal_of("Attention", "com.microsoft", 3, {heads, one("do_rotary")}),
       "attribute do_rotary: 1 is not supported"},
      {refusal_of("Attention", "com.microsoft", 3, {heads, one("past_present_share_buffer")}),
       "attribute past_present_share_buffer: 1 is not supported"},
      {refusal_of("MultiHeadAttention", "com.microsoft", 9, {heads}),
       "operand 8 (past_sequence_length) is not supported"},
      {refusal_of("GroupQueryAttention", "com.microsoft", 7, {heads, one("kv_num_heads"), one("sliding_window_cache")}),
       "attribute sliding_window_cache: 1 is not supported"},
      {refusal_of("MatMulNBits", "com.microsoft", 3, {attribute("bits", std::int64_t{3})}),
       "attribute bits: expected 2, 4 or 8, found 3"},
      {refusal_of("FusedGemm", "com.microsoft", 2, {attribute("activation", std::string("Affine"))}),
       "attribute activation: Affine is not supported"},
      {refusal_of("LabelEncoder", "ai.onnx.ml", 1, {strings_attribute("keys_strings")}),
       "attribute keys_strings: strings are not supported"},
      {refusal_of("TreeEnsembleClassifier", "ai.onnx.ml", 1, {strings_attribute("classlabels_strings")}),
       "attribute classlabels_strings: strings are not supported"},
      {refusal_of("LinearClassifier", "ai.onnx.ml", 1, {strings_attribute("classlabels_strings")}),
       "attribute classlabels_strings: strings are not supported"},
      {refusal_of("Constant", "", 0, {attribute("value_string", std::string("a"))}),
       "attribute value_string: strings are not supported"},
  };
  for (const auto& c : cases) EXPECT_NE(c.found.find(c.expected), std::string::npos) << c.expected << "\n" << c.found;
}

TEST(Strings, ConstantsThatNothingNeedsAreLeftOut) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  ::onnx::TensorProto words;
  words.set_name("words");
  words.set_data_type(P::STRING);
  words.add_dims(1);
  words.add_string_data("a");
  *graph.add_initializer() = words;
  node(graph, "Constant", {}, {"note"}, {attribute("value_string", std::string("exported"))});
  node(graph, "Constant", {}, {"more"}, {attribute("value", words)});
  node(graph, "Shape", {"more"}, {"size"});
  *graph.add_initializer() = tensor<float>("w", {2}, {1, 2});
  node(graph, "Add", {"x", "w"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2}, {10, 20}));
  runner.run(operands);
  EXPECT_EQ(elements<float>(runner.output()), (std::vector<float>{11, 22}));

  output(graph, "size");
  EXPECT_NE(error_text([&] { Runner needed(model_of(graph)); }).find("element type string is not supported"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Families, Contrib,
                         testing::Values("attention", "norms", "products", "quantized", "tables", "reported"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cermet::onnx::test
