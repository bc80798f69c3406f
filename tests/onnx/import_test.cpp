// Models on the CPU: types, shape arithmetic, and sizes that the file leaves open.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

TEST(Import, ReportsAllUnknownOperatorsAtOnce) {
  ::onnx::GraphProto graph, branch;
  input(graph, "x", P::FLOAT, {2});
  input(graph, "c", P::BOOL, {});
  node(branch, "Mystery", {"x"}, {"b"});
  output(branch, "b");
  node(graph, "Mystery", {"x"}, {"a"});
  node(graph, "Other", {"a"}, {"d"}).set_domain("my.domain");
  node(graph, "Relu", {"d"}, {"e"});
  node(graph, "If", {"c"}, {"f"}, {attribute("then_branch", branch), attribute("else_branch", branch)});
  output(graph, "f");
  const std::string message = error_text([&] { Runner runner(model_of(graph)); });
  EXPECT_NE(
      message.find("2 kinds of nodes are not supported:\n  3 x Mystery of opset 17\n  1 x my.domain.Other of opset 0"),
      std::string::npos)
      << message;
}

TEST(Import, OutputsMayBeInputsAndConstants) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  *graph.add_initializer() = tensor<float>("w", {2}, {3, 4});
  node(graph, "Constant", {}, {"k"}, {attribute("value", tensor<std::int64_t>("", {}, {9}))});
  node(graph, "Neg", {"w"}, {"n"});
  node(graph, "Identity", {"x"}, {"i"});
  for (const char* name : {"x", "w", "k", "n", "i"}) output(graph, name);
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2}, {1, 2}));
  runner.run(operands);
  EXPECT_EQ(elements<float>(runner.output(0)), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(runner.output(1)), (std::vector<float>{3, 4}));
  EXPECT_EQ(elements<std::int64_t>(runner.output(2)), (std::vector<std::int64_t>{9}));
  EXPECT_EQ(elements<float>(runner.output(3)), (std::vector<float>{-3, -4}));
  EXPECT_EQ(elements<float>(runner.output(4)), (std::vector<float>{1, 2}));
}

TEST(Import, InitializersAreDefaultsOfInputs) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  input(graph, "w", P::FLOAT, {2});
  *graph.add_initializer() = tensor<float>("w", {2}, {10, 20});
  node(graph, "Add", {"x", "w"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  ASSERT_EQ(runner.compiled().inputs().size(), 1u);
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2}, {1, 2}));
  runner.run(operands);
  EXPECT_EQ(elements<float>(runner.output()), (std::vector<float>{11, 22}));
}

TEST(Import, NamesInputsThatDoNotFit) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {"n", 2});
  input(graph, "z", P::FLOAT, {"n", 2});
  node(graph, "Add", {"x", "z"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  const auto text = [&](OwnedTensor a, OwnedTensor b) {
    std::vector<OwnedTensor> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return error_text([&] { runner.run(operands); });
  };
  EXPECT_EQ(error_text([&] { runner.run({}); }), "inputs: expected 2, found 0");
  EXPECT_EQ(text(integers({1, 2}, {1, 2}), floats({1, 2}, {1, 2})),
            "input 'x': expected elements of type f32, found i64");
  EXPECT_EQ(text(floats({1, 2}, {1, 2}), floats({1, 1}, {1})), "input 'z': expected dimensions [n, 2], found [1, 1]");
  EXPECT_EQ(text(floats({1, 2}, {1, 2}), floats({2, 2}, {1, 2, 3, 4})),
            "input 'z': expected n = 1, as another input has it, found 2");
  EXPECT_EQ(text(floats({1, 2}, {1, 2}), floats({1, 2}, {1, 2})), "no error");
}

/// One run of an operator on an operand of a type.
template <class T>
std::vector<T> unary(const std::string& op, Code code, DType dtype, const std::vector<T>& values,
                     const std::vector<AttributeProto>& attributes = {}) {
  ::onnx::GraphProto graph;
  input(graph, "x", code, {static_cast<std::int64_t>(values.size())});
  node(graph, op, {"x"}, {"y"}, attributes);
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(owned({static_cast<std::int64_t>(values.size())}, values, dtype));
  runner.run(operands);
  EXPECT_EQ(runner.output().dtype, dtype);
  return elements<T>(runner.output());
}

TEST(Import, TakesEveryElementType) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;  // no double
  EXPECT_EQ(unary<std::int64_t>("Neg", P::INT64, DType::i64, {large, -3}), (std::vector<std::int64_t>{-large, 3}));
  EXPECT_EQ(unary<std::uint8_t>("Not", P::BOOL, DType::boolean, {0, 1}), (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(unary<std::uint16_t>("Neg", P::FLOAT16, DType::f16, {0x3c00, 0xc000}),
            (std::vector<std::uint16_t>{0xbc00, 0x4000}));
  EXPECT_EQ(unary<std::uint16_t>("Neg", P::BFLOAT16, DType::bf16, {0x3f80, 0xc000}),
            (std::vector<std::uint16_t>{0xbf80, 0x4000}));
  EXPECT_EQ(unary<double>("Identity", P::DOUBLE, DType::f64, {1.0 / 3, -2}), (std::vector<double>{1.0 / 3, -2}));
  EXPECT_EQ(unary<std::int32_t>("Neg", P::INT32, DType::i32, {5, -6}), (std::vector<std::int32_t>{-5, 6}));
  EXPECT_EQ(unary<std::int8_t>("Identity", P::INT8, DType::i8, {5, -6}), (std::vector<std::int8_t>{5, -6}));
}

/// What exporters leave of heads that are split and joined: y = (x + 1) as [batch, sequence, 2, 2], z as [batch,
/// sequence * 4].
::onnx::GraphProto shape_arithmetic_graph() {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {"batch", "sequence", 4});
  *graph.add_initializer() = ints("zero", {0});
  *graph.add_initializer() = ints("one", {1});
  *graph.add_initializer() = ints("halves", {2, 2});
  *graph.add_initializer() = ints("four", {4});
  *graph.add_initializer() = tensor<float>("w", {1}, {1});
  node(graph, "Shape", {"x"}, {"shape"});
  node(graph, "Gather", {"shape", "zero"}, {"b"});
  node(graph, "Gather", {"shape", "one"}, {"s"});
  node(graph, "Concat", {"b", "s", "halves"}, {"split"}, {attribute("axis", std::int64_t{0})});
  node(graph, "Mul", {"s", "four"}, {"width"});
  node(graph, "Concat", {"b", "width"}, {"joined"}, {attribute("axis", std::int64_t{0})});
  node(graph, "Add", {"x", "w"}, {"more"});
  node(graph, "Reshape", {"more", "split"}, {"y"});
  node(graph, "Reshape", {"y", "joined"}, {"z"});
  output(graph, "y");
  output(graph, "z");
  return graph;
}

std::vector<OwnedTensor> counted(std::int64_t b, std::int64_t s) {
  std::vector<float> values(static_cast<std::size_t>(b * s * 4));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({b, s, 4}, values));
  return operands;
}

void expect_counted(Runner& runner, std::int64_t b, std::int64_t s) {
  runner.run(counted(b, s));
  EXPECT_EQ(runner.output(0).shape, (Shape{b, s, 2, 2}));
  EXPECT_EQ(runner.output(1).shape, (Shape{b, s * 4}));
  for (const std::size_t o : {0u, 1u}) {
    const std::vector<float> y = elements<float>(runner.output(o));
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(i) + 1);
  }
}

TEST(Import, RangesCompileOnce) {
  Runner runner(model_of(shape_arithmetic_graph()), {{"batch", {1, 8}}, {"sequence", {1, 16}}});
  expect_counted(runner, 2, 3);
  ASSERT_TRUE(runner.compiled().is_symbolic()) << runner.compiled().why_not_symbolic();
  const Session* first = runner.compiled().parts().at(0).session;
  expect_counted(runner, 8, 16);
  expect_counted(runner, 1, 1);
  EXPECT_EQ(runner.compiled().parts().at(0).session, first) << "another size was compiled";
  EXPECT_EQ(runner.compiled().compiled_parts(), 1);
  EXPECT_EQ(error_text([&] { runner.run(counted(9, 3)); }), "input 'x': expected batch from 1 to 8, found 9");
}

TEST(Import, WithoutRangesEverySizeIsCompiled) {
  Runner runner(model_of(shape_arithmetic_graph()));
  expect_counted(runner, 2, 3);
  expect_counted(runner, 4, 5);
  expect_counted(runner, 2, 3);
  EXPECT_EQ(runner.compiled().compiled_parts(), 2);
}

TEST(Import, RefusesRangesThatNoInputHas) {
  const ::onnx::ModelProto model = model_of(shape_arithmetic_graph());
  EXPECT_NE(error_text([&] {
              Runner(model, {{"bach", {1, 2}}});
            }).find("--dim bach: expected a dimension that an input of"),
            std::string::npos);
  EXPECT_EQ(error_text([&] {
              Runner(model, {{"batch", {3, 2}}});
            }),
            "--dim batch: expected a range from 0, found 3..2");
}

TEST(Import, SizesThatDependOnElementsEndAPart) {
  ::onnx::GraphProto graph;
  input(graph, "n", P::INT64, {});
  input(graph, "x", P::FLOAT, {4});
  *graph.add_initializer() = tensor<std::int64_t>("zero", {}, {0});
  *graph.add_initializer() = tensor<std::int64_t>("one", {}, {1});
  node(graph, "Add", {"n", "one"}, {"m"});
  node(graph, "Range", {"zero", "m", "one"}, {"r"});
  node(graph, "Gather", {"x", "r"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  for (const std::int64_t n : {1, 3}) {
    std::vector<OwnedTensor> operands;
    operands.push_back(integers({}, {n}));
    operands.push_back(floats({4}, {1, 2, 3, 4}));
    runner.run(operands);
    EXPECT_EQ(runner.output().shape, (Shape{n + 1}));
    EXPECT_EQ(elements<float>(runner.output()).back(), static_cast<float>(n + 1));
    EXPECT_EQ(runner.compiled().parts().size(), 2u);
  }
}

TEST(Import, KeepsOneElementOfConstantsThatRepeatIt) {
  constexpr std::int64_t size = 300;  // squared, more than what is evaluated while importing
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {size, size});
  input(graph, "row", P::FLOAT, {1, size});
  *graph.add_initializer() = ints("s", {size, size});
  *graph.add_initializer() = tensor<float>("three", {1}, {3});
  node(graph, "ConstantOfShape", {"s"}, {"halves"}, {attribute("value", tensor<float>("", {1}, {0.5f}))});
  node(graph, "Mul", {"halves", "three"}, {"c"});
  node(graph, "Add", {"x", "c"}, {"y"});
  node(graph, "Add", {"row", "c"}, {"z"});  // the constant gives the result its dimensions
  output(graph, "y");
  Runner one(model_of(graph));
  output(graph, "z");
  Runner both(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({size, size}, std::vector<float>(size * size, 1)));
  operands.push_back(floats({1, size}, std::vector<float>(size, 2)));
  one.run(operands);
  both.run(operands);
  EXPECT_EQ(elements<float>(one.output(0)), std::vector<float>(size * size, 2.5f));
  EXPECT_EQ(elements<float>(both.output(1)), std::vector<float>(size * size, 3.5f));
  EXPECT_LT(one.compiled().weight_bytes(), 1024);
}

TEST(Import, ErrorsNameTheNode) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  *graph.add_initializer() = ints("shape", {3});
  node(graph, "Reshape", {"x", "shape"}, {"y"}).set_name("the_reshape");
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2}, {1, 2}));
  EXPECT_EQ(error_text([&] { runner.run(operands); }),
            "node 'the_reshape' (Reshape): shape: expected dimensions of 2 elements, found [3]");
}

}  // namespace
}  // namespace cermet::onnx::test
