// Results that no kernel computes.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/onnx/builder.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

TEST(Results, ViewsOfOperandsOutliveThem) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {4, 3});
  *graph.add_initializer() = ints("zero", {0});
  *graph.add_initializer() = ints("one", {1});
  *graph.add_initializer() = ints("two", {2});
  *graph.add_initializer() = tensor<float>("number", {}, {1});
  node(graph, "Slice", {"x", "zero", "two", "zero"}, {"rows"});
  node(graph, "Slice", {"x", "zero", "two", "one"}, {"columns"});
  node(graph, "Mul", {"x", "number"}, {"same"});
  for (const char* name : {"rows", "columns", "same", "x"}) output(graph, name);
  Runner runner(model_of(graph));
  std::vector<float> x(12);
  std::iota(x.begin(), x.end(), 0.0f);
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({4, 3}, x));
  runner.run(operands);
  std::memset(operands[0].view.data, 0, x.size() * sizeof(float));
  EXPECT_EQ(elements<float>(runner.output(0)), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(elements<float>(runner.output(1)), (std::vector<float>{0, 1, 3, 4, 6, 7, 9, 10}));
  EXPECT_EQ(elements<float>(runner.output(2)), x);
  EXPECT_EQ(elements<float>(runner.output(3)), x);
}

TEST(Results, AScalarMayBeAnInputOrAViewOfOne) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {});
  node(graph, "Cast", {"x"}, {"same"}, {attribute("to", std::int64_t{P::FLOAT})});
  for (const char* name : {"same", "x"}) output(graph, name);
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({}, {3}));
  runner.run(operands);
  EXPECT_EQ(elements<float>(runner.output(0)), std::vector<float>{3});
  EXPECT_EQ(elements<float>(runner.output(1)), std::vector<float>{3});
}

}  // namespace
}  // namespace cermet::onnx::test
