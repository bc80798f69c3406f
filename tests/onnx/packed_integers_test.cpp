// Constants of types that files pack, and devices on which no elements say what follows.
#include <gtest/gtest.h>

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;
constexpr int uint4 = 21, int4 = 22, float4 = 23, int2 = 26;

::onnx::TensorProto packed_tensor(const std::string& name, std::int64_t count, int code,
                                  const std::vector<std::uint8_t>& bytes) {
  ::onnx::TensorProto made = tensor<std::uint8_t>(name, {count}, bytes);
  made.set_data_type(code);
  return made;
}

/// The constant times one half, through DequantizeLinear.
std::vector<float> dequantized(const ::onnx::TensorProto& constant) {
  ::onnx::GraphProto graph;
  *graph.add_initializer() = constant;
  *graph.add_initializer() = tensor<float>("scale", {}, {0.5f});
  node(graph, "DequantizeLinear", {constant.name(), "scale"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph, 23));
  runner.run({});
  return elements<float>(runner.output());
}

TEST(PackedIntegers, FirstElementsAreLowBits) {
  EXPECT_EQ(dequantized(packed_tensor("w", 3, int4, {0x8f, 0x07})), (std::vector<float>{-0.5f, -4, 3.5f}));
  EXPECT_EQ(dequantized(packed_tensor("w", 3, uint4, {0x8f, 0x07})), (std::vector<float>{7.5f, 4, 3.5f}));
  EXPECT_EQ(dequantized(packed_tensor("w", 5, int2, {0xe4, 0x01})), (std::vector<float>{0, 0.5f, -1, -0.5f, 0.5f}));
  EXPECT_EQ(dequantized(packed_tensor("w", 2, float4, {0xd7})), (std::vector<float>{3, -1.5f}));
  ::onnx::TensorProto listed;  // as int32_data has it
  listed.set_name("w");
  listed.set_data_type(int4);
  listed.add_dims(3);
  listed.add_int32_data(0x8f);
  listed.add_int32_data(0x07);
  EXPECT_EQ(dequantized(listed), (std::vector<float>{-0.5f, -4, 3.5f}));
  EXPECT_EQ(error_text([] {
              dequantized(packed_tensor("w", 5, int4, {0, 0}));
            }).find("tensor 'w': expected 3 bytes for i8[5], found 2") != std::string::npos,
            true);
}

std::vector<std::int8_t> to_int4(const std::string& op, const std::vector<float>& x,
                                 const std::vector<AttributeProto>& attributes) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {static_cast<std::int64_t>(x.size())});
  *graph.add_initializer() = tensor<float>("scale", {}, {1});
  *graph.add_initializer() = packed_tensor("zero", 1, int4, {0x01});
  graph.mutable_initializer(1)->clear_dims();
  node(graph, op, op == "Cast" ? Names{"x"} : Names{"x", "scale", "zero"}, {"y"}, attributes);
  output(graph, "y");
  Runner runner(model_of(graph, 21));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({static_cast<std::int64_t>(x.size())}, x));
  runner.run(operands);
  return elements<std::int8_t>(runner.output());
}

TEST(PackedIntegers, CastKeepsLowBitsAndQuantizeLinearSaturates) {
  EXPECT_EQ(to_int4("Cast", {7, 8, -8, -9, 17}, {attribute("to", std::int64_t{int4})}),
            (std::vector<std::int8_t>{7, -8, -8, 7, 1}));
  EXPECT_EQ(to_int4("QuantizeLinear", {3, 6, 20, -9, -20}, {}), (std::vector<std::int8_t>{4, 7, 7, -8, -8}));
}

TEST(NullDevice, StopsWhereElementsSayWhatFollows) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {4});
  node(graph, "Abs", {"x"}, {"a"});
  node(graph, "NonZero", {"a"}, {"y"});
  output(graph, "y");
  const Folder folder;
  Context context(ContextOptions{.device = "null", .threads = 1});
  CompiledModel compiled(std::make_shared<const Model>(read_model(folder.write(model_of(graph)))), context, {});
  const OwnedTensor x = floats({4}, {1, 0, 2, 0});
  compiled.run(std::vector<TensorView>{x.view});
  EXPECT_TRUE(compiled.missing_elements().has_value());
  EXPECT_EQ(compiled.parts().size(), 1u);
}

}  // namespace
}  // namespace cermet::onnx::test
