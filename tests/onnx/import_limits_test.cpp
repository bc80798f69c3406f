// What a file that means harm may not take: time and memory out of proportion to what it holds.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

/// What a model of one operator on x[1] and an initializer says.
std::string text_of_giant(const std::string& op, const P& operand, const std::vector<AttributeProto>& attributes = {}) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {1});
  *graph.add_initializer() = operand;
  node(graph, op, op == "ConstantOfShape" ? Names{operand.name()} : Names{"x", operand.name()}, {"y"}, attributes);
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({1}, {1}));
  return error_text([&] { runner.run(operands); });
}

TEST(ImportLimits, RefusesGiantSizesBeforeMemoryIsTaken) {
  const std::string amplified =
      "expected results that take at most 4096 times what the model is given (12 bytes), found f32[4294967296]";
  const std::int64_t large = std::int64_t{1} << 32;
  EXPECT_EQ(text_of_giant("Expand", ints("s", {large})), "node 'y' (Expand): " + amplified);
  EXPECT_NE(text_of_giant("Tile", ints("s", {large})).find("expected results that take at most 4096 times"),
            std::string::npos);
  EXPECT_NE(text_of_giant("Pad", ints("s", {large, 0})).find("expected results that take at most 4096 times"),
            std::string::npos);
  EXPECT_EQ(text_of_giant("ConstantOfShape", ints("s", {large})),
            "node 'y' (ConstantOfShape): expected at most 1073741856 bytes of constants that are computed of others, "
            "found 17179869184 more than 0");
  EXPECT_EQ(text_of_giant("Pad", ints("s", {std::int64_t{1} << 62, 0})),
            "node 'y' (Pad): pads: expected numbers up to 1099511627776, found 4611686018427387904");
  EXPECT_NE(text_of_giant("Pad", ints("s", {large, 0}), {attribute("mode", std::string("wrap"))})
                .find("expected a list of at most 4194304 elements"),
            std::string::npos);
}

TEST(ImportLimits, RefusesToComputeLargeConstantsBeforeWeightsLoad) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {1});
  *graph.add_initializer() =
      ints("s", {std::int64_t{1} << 26});  // 256 MiB of f32: fine for a weight, not for the shape of another value
  node(graph, "ConstantOfShape", {"s"}, {"c"});
  node(graph, "Cast", {"c"}, {"shape"}, {attribute("to", std::int64_t{P::INT32})});
  node(graph, "Expand", {"x", "shape"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({1}, {1}));
  EXPECT_EQ(error_text([&] { runner.run(operands); }),
            "node 'y' (Expand): expected at most 16777248 elements and operations to compute while importing, found "
            "67108865 more than 1");
}

/// Constants that are results are computed where they are read, by definitions: in a second at most, whatever a file of
/// a hundred bytes says.
TEST(ImportLimits, RefusesToComputeLargeConstantsElementByElement) {
  const auto text = [](std::int64_t elements, int times) {
    ::onnx::GraphProto graph;
    *graph.add_initializer() = ints("s", {elements});
    *graph.add_initializer() = tensor<float>("one", {1}, {1});
    std::string last = "one";
    for (int i = 0; i < times; ++i) {
      const std::string name = "y" + std::to_string(i);
      node(graph, i == 0 ? "Expand" : "Exp", i == 0 ? Names{last, "s"} : Names{last}, {name});
      last = name;
    }
    output(graph, last);
    Runner runner(model_of(graph));
    return error_text([&] {
      runner.run(std::vector<OwnedTensor>());
      runner.output();
    });
  };
  EXPECT_EQ(text(100, 2), "no error");
  EXPECT_EQ(text(1 << 25, 1),
            "expected at most 16777264 elements and operations to compute while importing, found 33554433 more than 1");
  EXPECT_NE(text(1 << 20, 10).find("to compute while importing"), std::string::npos) << "chains add up";
  EXPECT_NE(text(1 << 15, 300).find("to compute while importing"), std::string::npos) << "so do small constants";
}

TEST(ImportLimits, RefusesRangesOfGiantSizes) {
  const auto text = [](std::int64_t start, std::int64_t limit, std::int64_t step) {
    ::onnx::GraphProto graph;
    *graph.add_initializer() = tensor<std::int64_t>("a", {}, {start});
    *graph.add_initializer() = tensor<std::int64_t>("b", {}, {limit});
    *graph.add_initializer() = tensor<std::int64_t>("c", {}, {step});
    node(graph, "Range", {"a", "b", "c"}, {"y"});
    output(graph, "y");
    Runner runner(model_of(graph));
    std::string message = error_text([&] { runner.run(std::vector<OwnedTensor>()); });
    return message == "no error" ? fmt::format("{}", fmt::join(elements<std::int64_t>(runner.output()), " ")) : message;
  };
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(text(0, 1'000'000'000'000'000'000, 1),
            "node 'y' (Range): expected a list of at most 4194304 elements, found 1000000000000000000");
  EXPECT_EQ(text(least, most, 1),
            "node 'y' (Range): expected a list of at most 4194304 elements, found 9223372036854775807");
  EXPECT_EQ(text(most - 2, most, 2), "9223372036854775805") << "no step past the largest number";
  EXPECT_EQ(text(least, most, most), "-9223372036854775808 -1 9223372036854775806");
  EXPECT_EQ(text(3, -3, -3), "3 0");
  EXPECT_EQ(text(0, 5, -1), "");
  EXPECT_EQ(text(0, 5, 0), "node 'y' (Range): delta: expected another number than 0, found 0");
}

}  // namespace
}  // namespace cermet::onnx::test
