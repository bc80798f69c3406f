// Operators of early opsets, which said in attributes what later ones take from their operands.
#include <gtest/gtest.h>

#include "tests/onnx/builder.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

/// y = op(x, constants..) of float32 in an opset.
std::vector<float> old_result(const std::string& op, std::int64_t opset, const Shape& shape,
                              const std::vector<float>& x, const std::vector<::onnx::TensorProto>& constants,
                              const std::vector<AttributeProto>& attributes) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, Sizes(shape.begin(), shape.end()));
  Names names{"x"};
  for (const ::onnx::TensorProto& constant : constants) {
    *graph.add_initializer() = constant;
    names.push_back(constant.name());
  }
  node(graph, op, names, {"y"}, attributes);
  output(graph, "y");
  Runner runner(model_of(graph, opset));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats(shape, x));
  runner.run(operands);
  return elements<float>(runner.output());
}

TEST(OldOpsets, OperandsBroadcastFromAnAxisOn) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};  // [1, 2, 2, 2]
  const auto b = tensor<float>("b", {2}, {10, 20});
  const std::vector<AttributeProto> by_channel{attribute("broadcast", std::int64_t{1}),
                                               attribute("axis", std::int64_t{1})};
  EXPECT_EQ(old_result("Add", 6, {1, 2, 2, 2}, x, {b}, by_channel),
            (std::vector<float>{11, 12, 13, 14, 25, 26, 27, 28}));
  EXPECT_EQ(old_result("Mul", 1, {1, 2, 2, 2}, x, {b}, by_channel),
            (std::vector<float>{10, 20, 30, 40, 100, 120, 140, 160}));
  EXPECT_EQ(old_result("Add", 6, {1, 2, 2, 2}, x, {b}, {attribute("broadcast", std::int64_t{1})}),
            (std::vector<float>{11, 22, 13, 24, 15, 26, 17, 28}));
  EXPECT_EQ(old_result("PRelu", 6, {1, 2, 1, 2}, {-1, 2, -3, 4}, {b}, {}), (std::vector<float>{-10, 2, -60, 4}));
}

TEST(OldOpsets, AttributesAndOperandsOfTheFirstVersions) {
  EXPECT_EQ(old_result("Concat", 1, {1, 2}, {1, 2}, {tensor<float>("b", {1, 2}, {3, 4})}, {}),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(old_result("Tile", 1, {1, 2}, {1, 2}, {tensor<float>("n", {1}, {2}), tensor<float>("a", {1}, {1})}, {}),
            (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(old_result("Pad", 1, {2}, {1, 2}, {},
                       {attribute("paddings", std::vector<std::int64_t>{1, 0}), attribute("value", 9.0f)}),
            (std::vector<float>{9, 1, 2}));
  EXPECT_EQ(old_result("LpPool", 1, {1, 1, 2, 2}, {3, 0, 0, 4}, {},
                       {attribute("kernel_shape", std::vector<std::int64_t>{2, 2}), attribute("p", 2.0f)}),
            (std::vector<float>{5}));
}

TEST(OldOpsets, CastNamesItsType) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  node(graph, "Cast", {"x"}, {"y"}, {attribute("to", std::string("INT64"))});
  output(graph, "y");
  Runner runner(model_of(graph, 5));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2}, {1.5f, -2.5f}));
  runner.run(operands);
  EXPECT_EQ(elements<std::int64_t>(runner.output()), (std::vector<std::int64_t>{1, -2}));
}

}  // namespace
}  // namespace cermet::onnx::test
