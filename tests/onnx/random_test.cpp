// Random numbers of a model: reproducible, apart where they must be, and of the distribution that the operator names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "op/schema/reference.hpp"

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

struct Moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

std::vector<double> numbers_of(const TensorView& view) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < view.elements(); ++i) values.push_back(load(view, i));
  return values;
}

Moments moments_of(const std::vector<double>& values) {
  Moments m{.mean = 0, .deviation = 0, .least = values.at(0), .most = values.at(0)};
  for (const double x : values) {
    m.mean += x / static_cast<double>(values.size());
    m.least = std::min(m.least, x);
    m.most = std::max(m.most, x);
  }
  for (const double x : values) m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

::onnx::ModelProto one_node(const std::string& op, const std::vector<AttributeProto>& attributes) {
  ::onnx::GraphProto graph;
  node(graph, op, {}, {"y"}, attributes);
  output(graph, "y");
  return model_of(graph);
}

std::vector<double> values_of(const ::onnx::ModelProto& model) {
  Runner runner(model);
  runner.run({});
  return numbers_of(runner.output());
}

const std::vector<std::int64_t> many{100, 200};

TEST(Random, NormalHasMeanAndScale) {
  for (const Code code : {P::FLOAT, P::DOUBLE, P::FLOAT16}) {
    Runner runner(one_node("RandomNormal", {attribute("shape", many), attribute("mean", 3.0f), attribute("scale", 0.5f),
                                            attribute("dtype", std::int64_t{code})}));
    runner.run({});
    EXPECT_EQ(runner.output().dtype, code == P::FLOAT ? DType::f32 : code == P::DOUBLE ? DType::f64 : DType::f16);
    EXPECT_EQ(runner.output().shape, (Shape{100, 200}));
    const std::vector<double> values = numbers_of(runner.output());
    const Moments m = moments_of(values);
    EXPECT_NEAR(m.mean, 3, 5 * 0.5 / std::sqrt(20000));
    EXPECT_NEAR(m.deviation, 0.5, 5 * 0.5 / std::sqrt(40000));
    const auto within = [&](double sigmas) {
      return static_cast<double>(
                 std::ranges::count_if(values, [&](double x) { return std::abs(x - 3) < sigmas * 0.5; })) /
             20000;
    };
    EXPECT_NEAR(within(1), 0.6827, 0.017);
    EXPECT_NEAR(within(2), 0.9545, 0.0075);
    EXPECT_NEAR(within(3), 0.9973, 0.002);
  }
}

TEST(Random, UniformFillsItsRange) {
  const std::vector<double> values = values_of(
      one_node("RandomUniform", {attribute("shape", many), attribute("low", -2.0f), attribute("high", 4.0f)}));
  const Moments m = moments_of(values);
  EXPECT_NEAR(m.mean, 1, 5 * 6 / std::sqrt(12.0 * 20000));
  EXPECT_GE(m.least, -2);
  EXPECT_LT(m.most, 4);
  std::vector<int> tenths(10);
  for (const double x : values) ++tenths[static_cast<std::size_t>((x + 2) / 0.6)];
  for (const int count : tenths) EXPECT_NEAR(count, 2000, 5 * std::sqrt(1800));
}

TEST(Random, RunsGiveTheSameAndNodesOthers) {
  ::onnx::GraphProto graph;
  for (const char* name : {"a", "b"}) {
    node(graph, "RandomNormal", {}, {name}, {attribute("shape", many)});
    output(graph, name);
  }
  for (const char* name : {"c", "d"}) {
    node(graph, "RandomNormal", {}, {name}, {attribute("shape", many), attribute("seed", 7.0f)});
    output(graph, name);
  }
  node(graph, "RandomNormal", {}, {"e"}, {attribute("shape", many), attribute("seed", 8.0f)});
  output(graph, "e");
  const auto run = [&] {
    Runner runner(model_of(graph));
    runner.run({});
    runner.run({});
    std::vector<std::vector<double>> results;
    for (std::size_t i = 0; i < 5; ++i) results.push_back(numbers_of(runner.output(i)));
    return results;
  };
  const auto results = run();
  EXPECT_EQ(results, run());
  EXPECT_NE(results[0], results[1]);  // without a seed, each node has its own
  EXPECT_EQ(results[2], results[3]);  // a seed names its numbers
  EXPECT_NE(results[2], results[0]);
  EXPECT_NE(results[2], results[4]);
}

TEST(Random, IterationsOfALoopDiffer) {
  for (const bool seeded : {false, true}) {
    ::onnx::GraphProto graph, body;
    input(body, "i", P::INT64, {});
    input(body, "more", P::BOOL, {});
    node(body, "Identity", {"more"}, {"again"});
    std::vector<AttributeProto> attributes{attribute("shape", std::vector<std::int64_t>{4})};
    if (seeded) attributes.push_back(attribute("seed", 1.0f));
    node(body, "RandomUniform", {}, {"drawn"}, attributes);
    output(body, "again");
    output(body, "drawn");
    *graph.add_initializer() = tensor<std::int64_t>("times", {}, {3});
    *graph.add_initializer() = tensor<std::uint8_t>("yes", {}, {1}, P::BOOL);
    node(graph, "Loop", {"times", "yes"}, {"y"}, {attribute("body", body)});
    output(graph, "y");
    const std::vector<double> values = values_of(model_of(graph));
    ASSERT_EQ(values.size(), 12u);
    EXPECT_NE(values[0], values[4]);
    EXPECT_NE(values[4], values[8]);
    EXPECT_NE(values[0], values[8]);
  }
}

TEST(Random, LikeTakesTypeAndSizesOfItsOperand) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT16, {2, "n"});
  node(graph, "RandomNormalLike", {"x"}, {"a"});
  node(graph, "RandomUniformLike", {"x"}, {"b"},
       {attribute("dtype", std::int64_t{P::DOUBLE}), attribute("low", 5.0f), attribute("high", 6.0f)});
  output(graph, "a");
  output(graph, "b");
  Runner runner(model_of(graph));
  for (const std::int64_t n : {3, 5}) {
    std::vector<OwnedTensor> operands;
    operands.emplace_back(DType::f16, Shape{2, n});
    std::memset(operands[0].view.data, 0, static_cast<std::size_t>(4 * n));
    runner.run(operands);
    EXPECT_EQ(runner.output(0).dtype, DType::f16);
    EXPECT_EQ(runner.output(0).shape, (Shape{2, n}));
    EXPECT_EQ(runner.output(1).dtype, DType::f64);
    EXPECT_EQ(runner.output(1).shape, (Shape{2, n}));
    for (const double x : numbers_of(runner.output(1))) EXPECT_TRUE(x >= 5 && x <= 6) << x;
  }
}

TEST(Random, BernoulliHasTheProbabilitiesOfItsOperand) {
  ::onnx::GraphProto graph;
  input(graph, "p", P::FLOAT, {4, 5000});
  node(graph, "Bernoulli", {"p"}, {"y"}, {attribute("dtype", std::int64_t{P::INT32})});
  output(graph, "y");
  const double probabilities[] = {0, 0.25, 0.9, 1};
  std::vector<float> p;
  for (const double probability : probabilities) p.insert(p.end(), 5000, static_cast<float>(probability));
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({4, 5000}, p));
  runner.run(operands);
  EXPECT_EQ(runner.output().dtype, DType::i32);
  const std::vector<double> values = numbers_of(runner.output());
  for (std::size_t row = 0; row < 4; ++row) {
    double ones = 0;
    for (std::size_t i = 0; i < 5000; ++i) ones += values[row * 5000 + i];
    EXPECT_NEAR(ones, 5000 * probabilities[row], 5 * std::sqrt(5000 * probabilities[row] * (1 - probabilities[row])));
  }
}

TEST(Random, MultinomialDrawsByLogarithms) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2, 3});
  node(graph, "Multinomial", {"x"}, {"y"},
       {attribute("sample_size", std::int64_t{6000}), attribute("dtype", std::int64_t{P::INT64})});
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({2, 3}, {std::log(1.0f), std::log(2.0f), std::log(7.0f), 5, -INFINITY, 5}));
  runner.run(operands);
  EXPECT_EQ(runner.output().dtype, DType::i64);
  EXPECT_EQ(runner.output().shape, (Shape{2, 6000}));
  const double expected[2][3] = {{0.1, 0.2, 0.7}, {0.5, 0, 0.5}};
  const std::vector<double> drawn = numbers_of(runner.output());
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t c = 0; c < 3; ++c) {
      const auto begin = drawn.begin() + static_cast<std::ptrdiff_t>(row * 6000);
      const double p = expected[row][c],
                   count = static_cast<double>(std::count(begin, begin + 6000, static_cast<double>(c)));
      EXPECT_NEAR(count, 6000 * p, 5 * std::sqrt(6000 * p * (1 - p)));
    }
}

TEST(Random, RefusesTypesAndSizesByName) {
  const auto refusal = [](const std::vector<AttributeProto>& attributes) {
    return error_text([&] { values_of(one_node("RandomNormal", attributes)); });
  };
  EXPECT_NE(refusal({attribute("shape", many), attribute("dtype", std::int64_t{P::INT32})})
                .find("attribute dtype: expected a floating type"),
            std::string::npos);
  EXPECT_NE(refusal({attribute("shape", std::vector<std::int64_t>{1 << 20, 1 << 20})})
                .find("random tensors of more than 4194304 elements"),
            std::string::npos);
  EXPECT_NE(refusal({}).find("attribute shape: expected sizes, found none"), std::string::npos);
}

}  // namespace
}  // namespace cermet::onnx::test
