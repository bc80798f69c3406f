// Finding what changes a result: a wrong rule, a wrong kernel, neither.
#include "runtime/bisect.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/rewrite/replace.hpp"
#include "runtime/session.hpp"
#include "select/select.hpp"
#include "tests/runtime/graph_harness.hpp"

namespace cermet {
namespace {

constexpr const char* network = R"(graph g {
  input %x : f32[4, 8]
  constant %w : f32[8, 8]
  constant %v : f32[8, 8]
  constant %bias : f32[8]
  %a = linear(%x, %w) : f32[4, 8]
  %b = add(%a, %bias) : f32[4, 8]
  %c = silu(%b) : f32[4, 8]
  %d = softmax(%c) : f32[4, 8]
  %e = linear(%d, %v) : f32[4, 8]
  %f = relu(%e) : f32[4, 8]
  %h = silu(%f) : f32[4, 8]
  output y = %h
})";

/// The result has the name of a value whose channels go to another place.
constexpr const char* image = R"(graph g {
  input %x : f32[1, 3, 8, 8]
  constant %w : f32[8, 3, 3, 3]
  %c = conv(%x, %w) {pads = [1, 1, 1, 1]} : f32[1, 8, 8, 8]
  %y = relu(%c) : f32[1, 8, 8, 8]
  output y = %y
})";

/// Compiles the network as the options say and runs it on the CPU.
BisectRun runs_of(const char* text = network, const Shape& shape = {4, 8}) {
  return [text, shape](const FusionOptions& fusion) {
    Context context(ContextOptions{.device = "cpu", .threads = 1});
    Session session(parse_graph(text), context, load_by_name, {.maximum = {}, .skip = {}, .fusion = fusion});
    OwnedTensor x(DType::f32, shape);
    fill_by_name("x", x.view);
    session.bind("x", x.view);
    session.run();
    std::vector<std::string> names = fusion.changes->keep;
    names.emplace_back("y");
    std::vector<RunValue> values;
    for (const std::string& name : names) {
      if (!session.has_output(name)) continue;
      const TensorView view = session.host_output(name);
      values.push_back({name, {}});
      for (std::int64_t i = 0; i < view.elements(); ++i) values.back().elements.push_back(load(view, i));
    }
    return values;
  };
}

TEST(Bisect, FindsNothingWhereNothingIsWrong) {
  const BisectReport report = bisect(runs_of(), {}, 1e-4);
  EXPECT_GT(report.changes, 1u);
  EXPECT_FALSE(report.culprit);
  EXPECT_EQ(report.runs, 2u);
  EXPECT_EQ(report.whole.value, "y");
}

TEST(Bisect, FindsTheWrongRule) {
  std::vector<Rule> rules(rewrite_rules().begin(), rewrite_rules().end());
  rules.push_back(text_rule(
      "wrong-relu", RoundingClass::exact, "y = relu(x) -> y = abs(x)", [](const Match&) { return true; },
      [](const Match&) { return Attributes(); }));
  const BisectReport report = bisect(runs_of(), {.rules = &rules}, 1e-4);
  ASSERT_TRUE(report.culprit);
  EXPECT_EQ(report.culprit->rule, "wrong-relu");
  EXPECT_EQ(report.culprit->text, "f");
  EXPECT_EQ(report.position, 1u) << "behind the bias";
  EXPECT_FALSE(report.block);
  EXPECT_GT(report.with.error, 1e-4);
  EXPECT_NE(report.with.expected, report.with.found);
}

/// A kernel of the CPU whose first result is off by one.
const Kernel& off_by_one(const Kernel& right) {
  static std::vector<std::unique_ptr<Kernel>> made;
  made.push_back(std::make_unique<Kernel>(right));
  made.back()->name = "off_by_one";
  made.back()->bind = [&right](const Region& region, const Config& config) -> Launcher {
    return [launch = right.bind(region, config)](const LaunchArgs& args) {
      launch(args);
      args.outputs[0].as<float>()[0] += 1;
    };
  };
  return *made.back();
}

TEST(Bisect, FindsTheBlockWithTheWrongKernel) {
  FusionOptions options;
  options.choose = [](const Region& region, Choice& choice) {  // of all blocks the one of the last product
    if (region.nodes.size() > 1 && region.nodes.back().problem.op->kind == OpKind::silu && region.nodes.size() == 3)
      choice.kernel = &off_by_one(*choice.kernel);
  };
  const BisectReport report = bisect(runs_of(), options, 1e-4);
  ASSERT_TRUE(report.culprit);
  EXPECT_EQ(report.culprit->rule, "");
  EXPECT_EQ(report.culprit->text, "linear + relu + silu");
  EXPECT_EQ(report.culprit->results, std::vector<std::string>{"h"});
  ASSERT_TRUE(report.block);
  EXPECT_EQ(report.block->value, "h");
  EXPECT_EQ(report.block->index, 0u);
  EXPECT_NEAR(report.block->found - report.block->expected, 1, 1e-4);
}

TEST(Bisect, FindsTheBlockWhoseValueHasTheNameOfAResult) {
  FusionOptions options;
  options.choose = [](const Region& region, Choice& choice) {
    if (region.nodes.size() > 1 && region.nodes.back().problem.op->kind == OpKind::relu)
      choice.kernel = &off_by_one(*choice.kernel);
  };
  const BisectReport report = bisect(runs_of(image, {1, 3, 8, 8}), options, 1e-4);
  ASSERT_TRUE(report.culprit);
  EXPECT_EQ(report.culprit->results, std::vector<std::string>{"y"});
  ASSERT_TRUE(report.block);
  EXPECT_EQ(report.block->value, "y");
  EXPECT_NEAR(report.block->found - report.block->expected, 1, 1e-4);
}

TEST(Bisect, ComparesResults) {
  const double nan = std::nan("");
  const auto worst = [](std::vector<double> expected, std::vector<double> found) {
    return compare_runs({{"y", std::move(expected)}}, {{"y", std::move(found)}});
  };
  EXPECT_EQ(worst({1, -4}, {1, -4}).error, 0);
  EXPECT_EQ(worst({1, -4}, {2, -4}).error, 0.25);
  EXPECT_EQ(worst({1, -4}, {1.5, -2}).index, 1u);
  EXPECT_EQ(worst({nan}, {nan}).error, 0) << "the same on both sides";
  EXPECT_TRUE(std::isinf(worst({1, 2}, {1, nan}).error));
  EXPECT_TRUE(std::isinf(worst({1, 2}, {1}).error)) << "other sizes";
  EXPECT_TRUE(std::isinf(worst({0, 0}, {0, 1e-9}).error)) << "nothing to be relative to";
  EXPECT_EQ(compare_runs({{"y", {1}}}, {}).value, "y");
}

TEST(Changes, AreLimitedAndListed) {
  Changes changes;
  changes.limit = 2;
  runs_of()(FusionOptions{.changes = &changes});
  ASSERT_EQ(changes.made.size(), 2u);
  EXPECT_EQ(changes.made[0].rule, "linear-bias");
  EXPECT_EQ(changes.made[0].text, "b");
  EXPECT_EQ(changes.made[1].rule, "") << "a block";
  Changes none;
  none.limit = 0;
  runs_of()(FusionOptions{.changes = &none});
  EXPECT_TRUE(none.made.empty());
}

}  // namespace
}  // namespace cermet
