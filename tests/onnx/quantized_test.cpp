// Products and convolutions between DequantizeLinear and QuantizeLinear run on the integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "op/schema/operator.hpp"

#include "tests/onnx/builder.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

constexpr float x_scale = 0.125f;
constexpr int x_zero = 100;

float sample(std::size_t i) { return static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.21f; }
int weight(std::size_t i) { return static_cast<int>(i * 53 % 255) - 127; }

/// x as u8 and back, in the graph: "x_values" of "x".
void add_rows(::onnx::GraphProto& graph, const Sizes& dims) {
  input(graph, "x", P::FLOAT, dims);
  *graph.add_initializer() = tensor<float>("x_scale", {}, {x_scale});
  *graph.add_initializer() = tensor<std::uint8_t>("x_zero", {}, {x_zero});
  node(graph, "QuantizeLinear", {"x", "x_scale", "x_zero"}, {"x_bytes"});
  node(graph, "DequantizeLinear", {"x_bytes", "x_scale", "x_zero"}, {"x_values"});
}

/// The weight of a scale for each position along the axis: "w_values".
void add_weight(::onnx::GraphProto& graph, const std::vector<std::int64_t>& dims, std::int64_t axis) {
  std::size_t count = 1;
  for (const std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  std::vector<std::int8_t> elements;
  for (std::size_t i = 0; i < count; ++i) elements.push_back(static_cast<std::int8_t>(weight(i)));
  std::vector<float> scales;
  for (std::int64_t i = 0; i < dims[static_cast<std::size_t>(axis)]; ++i)
    scales.push_back(0.01f * static_cast<float>(i + 1));
  *graph.add_initializer() = tensor<std::int8_t>("w", dims, elements);
  *graph.add_initializer() = tensor<float>("w_scale", {static_cast<std::int64_t>(scales.size())}, scales);
  *graph.add_initializer() = tensor<std::int8_t>("w_zero", {static_cast<std::int64_t>(scales.size())},
                                                 std::vector<std::int8_t>(scales.size()));
  node(graph, "DequantizeLinear", {"w", "w_scale", "w_zero"}, {"w_values"}, {attribute("axis", axis)});
}

double quantized(float x) {
  return (std::clamp(std::nearbyint(x / x_scale) + x_zero, 0.0f, 255.0f) - x_zero) * x_scale;
}

std::int64_t steps_of(Runner& runner, std::string_view op) {
  const auto& steps = runner.compiled().parts().at(0).session->executable().steps();
  return std::ranges::count_if(steps, [&](const StepInfo& step) { return step.region.problem().op->name == op; });
}

std::vector<OwnedTensor> samples(const Shape& shape) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) values.push_back(sample(static_cast<std::size_t>(i)));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats(shape, values));
  return operands;
}

TEST(Quantized, AMatMulIsAProductOfBytes) {
  constexpr std::size_t rows = 6, length = 40, columns = 5;
  for (const bool transposed : {false, true}) {
    ::onnx::GraphProto graph;
    if (transposed) add_rows(graph, {6, 40});
    else add_rows(graph, {2, 3, 40});
    add_weight(graph, transposed ? std::vector<std::int64_t>{5, 40} : std::vector<std::int64_t>{40, 5},
               transposed ? 0 : 1);
    *graph.add_initializer() = tensor<float>("c", {5}, {1, 2, 3, 4, 5});
    if (transposed) node(graph, "Gemm", {"x_values", "w_values", "c"}, {"y"}, {attribute("transB", std::int64_t{1})});
    else node(graph, "MatMul", {"x_values", "w_values"}, {"y"});
    output(graph, "y");
    Runner runner(model_of(graph));
    runner.run(samples(transposed ? Shape{6, 40} : Shape{2, 3, 40}));
    EXPECT_EQ(steps_of(runner, "scaled_mm"), 1);
    EXPECT_EQ(steps_of(runner, "linear"), 0);
    const std::vector<float> y = elements<float>(runner.output());
    ASSERT_EQ(y.size(), rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (std::size_t k = 0; k < length; ++k)
          sum += quantized(sample(r * length + k)) * weight(transposed ? n * length + k : k * columns + n);
        const double expected = sum * static_cast<double>(0.01f * static_cast<float>(n + 1)) +
                                (transposed ? static_cast<double>(n + 1) : 0.0);
        EXPECT_NEAR(y[r * columns + n], expected, 4 * 0x1p-24 * (std::abs(expected) + 5));
      }
    }
  }
}

/// A convolution of 16 channels to 3 with windows of 3 x 3, steps of 2 and unlike pads.
struct Plane {
  static constexpr std::int64_t channels = 16, outputs = 3, height = 7, width = 6, out_height = 3, out_width = 3;

  static double element(std::int64_t b, std::int64_t m, std::int64_t h, std::int64_t w) {
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) {
          const std::int64_t y = 2 * h + i, x = 2 * w + j - 1;  // pads: none above, 1 on the left
          if (y >= height || x < 0 || x >= width) continue;
          const auto at = static_cast<std::size_t>(((b * channels + c) * height + y) * width + x);
          sum += quantized(sample(at)) * weight(static_cast<std::size_t>(((m * channels + c) * 3 + i) * 3 + j));
        }
      }
    }
    return sum * static_cast<double>(0.01f * static_cast<float>(m + 1)) + 0.5;
  }

  static ::onnx::GraphProto graph() {
    ::onnx::GraphProto graph;
    add_rows(graph, {2, channels, height, width});
    add_weight(graph, {outputs, channels, 3, 3}, 0);
    *graph.add_initializer() = tensor<float>("bias", {outputs}, std::vector<float>(outputs, 0.5f));
    node(graph, "Conv", {"x_values", "w_values", "bias"}, {"y"},
         {attribute("strides", std::vector<std::int64_t>{2, 2}),
          attribute("pads", std::vector<std::int64_t>{0, 1, 0, 1})});
    return graph;
  }

  /// Runs check(found, expected) for every element.
  template <class T, class Check>
  static void compare(const TensorView& view, const Check& check) {
    ASSERT_EQ(view.shape, Shape({2, outputs, out_height, out_width}));
    const std::vector<T> found = elements<T>(view);
    std::size_t at = 0;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t m = 0; m < outputs; ++m)
        for (std::int64_t h = 0; h < out_height; ++h)
          for (std::int64_t w = 0; w < out_width; ++w) check(found[at++], element(b, m, h, w));
  }
};

TEST(Quantized, AConvolutionIsAProductOfBytes) {
  ::onnx::GraphProto graph = Plane::graph();
  output(graph, "y");
  Runner runner(model_of(graph));
  runner.run(samples({2, Plane::channels, Plane::height, Plane::width}));
  EXPECT_EQ(steps_of(runner, "scaled_mm"), 1);
  EXPECT_EQ(steps_of(runner, "conv"), 0);
  Plane::compare<float>(runner.output(), [](float found, double expected) {
    EXPECT_NEAR(found, expected, 4 * 0x1p-24 * (std::abs(expected) + 5));
  });
}

TEST(Quantized, WhatFollowsAProductIsQuantizedInItsStore) {
  ::onnx::GraphProto graph = Plane::graph();
  *graph.add_initializer() = tensor<float>("y_scale", {}, {0.3f});
  *graph.add_initializer() = tensor<std::int8_t>("y_zero", {}, {-128});
  node(graph, "Relu", {"y"}, {"r"});
  node(graph, "QuantizeLinear", {"r", "y_scale", "y_zero"}, {"q"});
  output(graph, "q");
  Runner runner(model_of(graph));
  runner.run(samples({2, Plane::channels, Plane::height, Plane::width}));
  EXPECT_EQ(steps_of(runner, "scaled_mm"), 1);
  EXPECT_EQ(steps_of(runner, "quantize"), 1) << "of x alone";
  int large = 0;
  Plane::compare<std::int8_t>(runner.output(), [&](std::int8_t found, double expected) {
    const double steps = std::max(expected, 0.0) / static_cast<double>(0.3f);
    large += found > -100;
    if (std::abs(steps - std::floor(steps) - 0.5) > 1e-3) {
      EXPECT_EQ(found, std::min(std::nearbyint(steps) - 128, 127.0)) << expected;
    }
  });
  EXPECT_GT(large, 5);
}

TEST(Quantized, AnAsymmetricWeightIsDequantized) {
  ::onnx::GraphProto graph;
  add_rows(graph, {2, 4});
  *graph.add_initializer() = tensor<std::uint8_t>("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  *graph.add_initializer() = tensor<float>("w_scale", {}, {0.5f});
  *graph.add_initializer() = tensor<std::uint8_t>("w_zero", {}, {3});
  node(graph, "DequantizeLinear", {"w", "w_scale", "w_zero"}, {"w_values"});
  node(graph, "MatMul", {"x_values", "w_values"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2, 4}, {1, 0, 0, 0, 0, 0, 0, 2}));
  runner.run(operands);
  EXPECT_EQ(steps_of(runner, "scaled_mm"), 0);
  EXPECT_EQ(elements<float>(runner.output()), (std::vector<float>{-1, -0.5, 4, 5}));
}

}  // namespace
}  // namespace cermet::onnx::test
