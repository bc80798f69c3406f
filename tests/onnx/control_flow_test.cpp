// Branches, loops and functions, whose nodes are imported in place.
#include <gtest/gtest.h>

#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;

std::vector<OwnedTensor> operands_of(OwnedTensor a) {
  std::vector<OwnedTensor> list;
  list.push_back(std::move(a));
  return list;
}

/// y = f(x) in a branch, by the outer graph's x.
::onnx::GraphProto branch(const std::string& op) {
  ::onnx::GraphProto graph;
  node(graph, op, {"x"}, {"inner"});
  output(graph, "inner");
  return graph;
}

TEST(ControlFlow, TakesTheBranchThatAComputedConditionSays) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  *graph.add_initializer() = tensor<float>("zero", {}, {0});
  node(graph, "ReduceSum", {"x"}, {"sum"}, {attribute("keepdims", std::int64_t{0})});
  node(graph, "Greater", {"sum", "zero"}, {"c"});
  node(graph, "If", {"c"}, {"y"}, {attribute("then_branch", branch("Neg")), attribute("else_branch", branch("Abs"))});
  output(graph, "y");
  Runner runner(model_of(graph));
  runner.run(operands_of(floats({2}, {1, 2})));
  EXPECT_EQ(elements<float>(runner.output()), (std::vector<float>{-1, -2}));
  runner.run(operands_of(floats({2}, {-1, -2})));
  EXPECT_EQ(elements<float>(runner.output()), (std::vector<float>{1, 2}));
}

TEST(ControlFlow, RefusesBranchesThatDoNotFit) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  *graph.add_initializer() = tensor<std::uint8_t>("c", {}, {1}, P::BOOL);
  *graph.add_initializer() = tensor<std::uint8_t>("none", {0}, {}, P::BOOL);
  const auto text = [&](const std::string& condition, const std::vector<AttributeProto>& attributes) {
    ::onnx::GraphProto whole = graph;
    node(whole, "If", condition.empty() ? Names{} : Names{condition == "-" ? "" : condition}, {"y"}, attributes);
    output(whole, "y");
    return error_text([&] { Runner(model_of(whole)).run(operands_of(floats({2}, {1, 2}))); });
  };
  EXPECT_EQ(text("c", {}), "node 'y' (If): attribute then_branch: expected a graph, found none");
  EXPECT_EQ(text("", {}), "node 'y' (If): expected one operand, found 0");
  EXPECT_EQ(text("c", {attribute("then_branch", ::onnx::GraphProto())}),
            "node 'y' (If): expected a branch of 1 results, found 0");
  EXPECT_EQ(text("-", {attribute("then_branch", branch("Neg"))}),
            "node 'y' (If): operand 0: expected a value, found none");
  EXPECT_EQ(text("none", {attribute("then_branch", branch("Neg"))}),
            "node 'y' (If): condition: expected one element, found bool[0]");
}

/// Each iteration: sum' = sum + i, stacked i * 2; goes on while sum' < limit.
::onnx::GraphProto counting_body() {
  ::onnx::GraphProto body;
  input(body, "i", P::INT64, {});
  input(body, "c", P::BOOL, {});
  input(body, "sum", P::INT64, {});
  node(body, "Add", {"sum", "i"}, {"next"});
  node(body, "Add", {"i", "i"}, {"twice"});
  node(body, "Less", {"next", "limit"}, {"more"});
  for (const char* name : {"more", "next", "twice"}) output(body, name);
  return body;
}

::onnx::GraphProto counting_loop(const std::string& trips, const std::string& condition) {
  ::onnx::GraphProto graph;
  input(graph, "limit", P::INT64, {});
  *graph.add_initializer() = tensor<std::int64_t>("five", {}, {5});
  *graph.add_initializer() = tensor<std::int64_t>("none", {0}, {});
  *graph.add_initializer() = tensor<std::int64_t>("zero", {}, {0});
  *graph.add_initializer() = tensor<std::uint8_t>("yes", {}, {1}, P::BOOL);
  node(graph, "Loop", {trips, condition, "zero"}, {"total", "pieces"}, {attribute("body", counting_body())});
  output(graph, "total");
  output(graph, "pieces");
  return graph;
}

TEST(ControlFlow, LoopsRunTheirTrips) {
  Runner runner(model_of(counting_loop("five", "")));
  runner.run(operands_of(integers({}, {100})));
  EXPECT_EQ(elements<std::int64_t>(runner.output(0)), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(elements<std::int64_t>(runner.output(1)), (std::vector<std::int64_t>{0, 2, 4, 6, 8}));
}

TEST(ControlFlow, LoopsEndWhereTheirConditionSays) {
  for (const char* trips : {"", "five"}) {
    Runner runner(model_of(counting_loop(trips, "yes")));
    runner.run(operands_of(integers({}, {3})));  // 0, 1, 3
    EXPECT_EQ(elements<std::int64_t>(runner.output(0)), (std::vector<std::int64_t>{3}));
    EXPECT_EQ(elements<std::int64_t>(runner.output(1)), (std::vector<std::int64_t>{0, 2, 4}));
  }
}

TEST(ControlFlow, RefusesLoopsThatDoNotEnd) {
  Runner runner(model_of(counting_loop("none", "")));
  EXPECT_EQ(error_text([&] { runner.run(operands_of(integers({}, {1}))); }),
            "node 'total' (Loop): trip count: expected one element, found i64[0]");
  ::onnx::GraphProto graph = counting_loop("", "yes");
  ::onnx::GraphProto& body = *graph.mutable_node(0)->mutable_attribute(0)->mutable_g();
  body.mutable_output(0)->set_name("c");  // always true
  Runner endless(model_of(graph));
  EXPECT_EQ(error_text([&] { endless.run(operands_of(integers({}, {1}))); }),
            "node 'total': loops of more than 10000 iterations are not supported");
}

TEST(ControlFlow, RefusesLoopsWithinLoopsThatNeverEnd) {
  ::onnx::GraphProto inner, outer, graph;
  const auto make = [](::onnx::GraphProto& body, const std::string& suffix) {
    input(body, "i" + suffix, P::INT64, {});
    input(body, "c" + suffix, P::BOOL, {});
    output(body, "c" + suffix);
  };
  make(inner, "1");
  make(outer, "2");
  node(inner, "Add", {"many", "many"}, {"unused"});
  node(outer, "Loop", {"many", ""}, {}, {attribute("body", inner)});
  input(graph, "x", P::FLOAT, {1});
  *graph.add_initializer() = tensor<std::int64_t>("many", {}, {10000});
  node(graph, "Loop", {"many", ""}, {}, {attribute("body", outer)}).set_name("outermost");
  node(graph, "Neg", {"x"}, {"y"});
  output(graph, "y");
  Runner runner(model_of(graph));
  EXPECT_NE(error_text([&] {
              runner.run(operands_of(floats({1}, {1})));
            }).find("expected at most 100000 operators with all iterations and calls, found more"),
            std::string::npos);
}

TEST(ControlFlow, ScansWalkTheirInputs) {
  ::onnx::GraphProto body, graph;
  input(body, "sum", P::FLOAT, {2});
  input(body, "row", P::FLOAT, {2});
  node(body, "Add", {"sum", "row"}, {"next"});
  node(body, "Identity", {"next"}, {"piece"});
  output(body, "next");
  output(body, "piece");
  input(graph, "x", P::FLOAT, {3, 2});
  *graph.add_initializer() = tensor<float>("start", {2}, {0, 0});
  for (const bool backwards : {false, true}) {
    ::onnx::GraphProto whole = graph;
    node(whole, "Scan", {"start", "x"}, {"last", "all"},
         {attribute("body", body), attribute("num_scan_inputs", std::int64_t{1}),
          attribute("scan_input_directions", std::vector<std::int64_t>{backwards}),
          attribute("scan_output_directions", std::vector<std::int64_t>{backwards})});
    output(whole, "last");
    output(whole, "all");
    Runner runner(model_of(whole));
    runner.run(operands_of(floats({3, 2}, {1, 2, 3, 4, 5, 6})));
    EXPECT_EQ(elements<float>(runner.output(0)), (std::vector<float>{9, 12}));
    EXPECT_EQ(elements<float>(runner.output(1)),
              backwards ? (std::vector<float>{9, 12, 8, 10, 5, 6}) : (std::vector<float>{1, 2, 4, 6, 9, 12}));
  }
}

::onnx::FunctionProto& add_function(::onnx::ModelProto& model, const std::string& name) {
  ::onnx::FunctionProto& function = *model.add_functions();
  function.set_name(name);
  function.set_domain("my");
  auto& opset = *function.add_opset_import();
  opset.set_domain("");
  opset.set_version(17);
  auto& own = *function.add_opset_import();
  own.set_domain("my");
  own.set_version(1);
  function.add_input("a");
  function.add_output("b");
  return function;
}

TEST(ControlFlow, FunctionsTakeAttributesOfTheirCalls) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  node(graph, "Slope", {"x"}, {"h"}, {attribute("alpha", 0.5f)}).set_domain("my");
  node(graph, "Slope", {"h"}, {"y"}, {attribute("alpha", 0.25f)}).set_domain("my");
  output(graph, "y");
  ::onnx::ModelProto model = model_of(graph);
  node(add_function(model, "Slope"), "LeakyRelu", {"a"}, {"b"}, {reference("alpha", AttributeProto::FLOAT)});
  Runner runner(model);
  runner.run(operands_of(floats({2}, {-8, 8})));
  EXPECT_EQ(elements<float>(runner.output()), (std::vector<float>{-1, 8}));
}

TEST(ControlFlow, RefusesFunctionsThatCallThemselves) {
  ::onnx::GraphProto graph;
  input(graph, "x", P::FLOAT, {2});
  node(graph, "F", {"x"}, {"y"}).set_domain("my");
  output(graph, "y");
  ::onnx::ModelProto model = model_of(graph);
  node(add_function(model, "F"), "F", {"a"}, {"b"}).set_domain("my");
  EXPECT_NE(error_text([&] {
              Runner(model).run(operands_of(floats({2}, {1, 2})));
            }).find("expected at most 100 graphs and functions within each other"),
            std::string::npos);
  // Each calls the next twice: as many nodes as 2 to the 60th.
  ::onnx::ModelProto laughs = model_of(graph);
  for (int i = 0; i < 60; ++i) {
    ::onnx::FunctionProto& function = add_function(laughs, i == 0 ? "F" : "F" + std::to_string(i));
    const std::string next = i == 59 ? "Neg" : "F" + std::to_string(i + 1);
    node(function, next, {"a"}, {"h"}).set_domain(i == 59 ? "" : "my");
    node(function, next, {"h"}, {"b"}).set_domain(i == 59 ? "" : "my");
  }
  EXPECT_NE(error_text([&] {
              Runner(laughs).run(operands_of(floats({2}, {1, 2})));
            }).find("expected at most 100000 operators"),
            std::string::npos);
}

}  // namespace
}  // namespace cermet::onnx::test
