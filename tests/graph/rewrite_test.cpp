#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "graph/rewrite/rule.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/evaluate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

std::string file(const Rule& rule, std::string_view which) {
  return fmt::format("graph/golden/rewrite/{}.{}.graph", rule.name, which);
}
Graph read(const std::string& name) { return parse_graph(read_text(CERMET_SOURCE_DIR "/tests/" + name)); }

/// Results of a rule that is not exact: quantized values differ by a step at most, others by float32 rounding, or by
/// that of values in between, which are at most 1.
double allowed(const Rule& rule, DType type, double value) {
  if (rule.rounding == RoundingClass::exact) return 0;
  if (rule.rounding == RoundingClass::fast && type == DType::bf16) return (1 + std::abs(value)) / 128;
  if (type == DType::i8 || type == DType::i32) return 1;
  return type == DType::f8_e4m3 ? std::abs(value) / 8
         : type == DType::bf16  ? std::abs(value) / 128
                                : 1e-5 * (1 + std::abs(value));
}

/// Every rule of whole operators has an example in golden/rewrite, computes there what the graph computed before, and
/// leaves NAME.kept alone, where its condition does not hold.
class RewriteRule : public testing::TestWithParam<const Rule*> {};

TEST_P(RewriteRule, RewritesItsExampleAndComputesTheSame) {
  const Rule& rule = *GetParam();
  const Graph before = read(file(rule, "before"));
  const Rewritten after = rewrite(before, {&rule, 1}, RoundingClass::fast);
  verify(after.graph);
  ASSERT_EQ(after.counts.size(), 1u) << "the rule does not fit its example";
  EXPECT_EQ(after.counts[0].times, 1u);
  expect_golden(file(rule, "after"), to_text(after.graph));
  EXPECT_TRUE(rewrite(after.graph, {&rule, 1}, RoundingClass::fast).counts.empty()) << "a second time changes nothing";
  for (const std::int64_t tokens : {1, 7}) {
    SymbolValues symbols;
    symbols.set(Symbol("T"), tokens);
    const auto expected = Evaluation(before, symbols).outputs(), found = Evaluation(after.graph, symbols).outputs();
    for (const GraphOutput& output : before.outputs()) {
      const std::vector<double>&x = expected.at(output.name), &y = found.at(output.name);
      ASSERT_EQ(x.size(), y.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_LE(std::abs(x[i] - y[i]), allowed(rule, before.type(output.value).dtype, x[i]))
            << output.name << ' ' << i;
    }
  }
}

TEST_P(RewriteRule, LeavesAloneWhatItsConditionExcludes) {
  const Rule& rule = *GetParam();
  const Graph graph = read(file(rule, "kept"));
  EXPECT_EQ(to_text(rewrite(graph, {&rule, 1}, RoundingClass::fast).graph), to_text(graph));
}

std::vector<const Rule*> every_rule() {
  std::vector<const Rule*> list;
  for (const Rule& rule : rewrite_rules())
    if (rule.rule_class == RuleClass::operators) list.push_back(&rule);  // rows of algebra: algebra_test.cpp
  return list;
}

INSTANTIATE_TEST_SUITE_P(Rules, RewriteRule, testing::ValuesIn(every_rule()), [](const auto& test) {
  std::string name(test.param->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Rewrite, RulesBuildOnEachOther) {
  const Graph graph = parse_graph(R"(graph g {
  input %delta : f32[T, 16]
  input %hidden : f32[T, 16]
  constant %w : f32[16]
  %sum = add(%delta, %hidden) : f32[T, 16]
  %y = rms_norm(%sum, %w) : f32[T, 16]
  %q, %scale = dynamic_quant(%y) : i8[T, 16], f32[T]
  output q = %q
  output scale = %scale
  output sum = %sum
}
)");
  const Rewritten strict = rewrite(graph, rewrite_rules());
  verify(strict.graph);
  ASSERT_EQ(strict.graph.nodes().size(), 1u) << to_text(strict.graph);
  EXPECT_EQ(strict.graph.nodes()[0].op, OpKind::add_rms_norm_quant);
  EXPECT_EQ(strict.graph.value(strict.graph.outputs()[0].value).name, "q") << "results keep their names";
  const Rewritten exact = rewrite(graph, rewrite_rules(), RoundingClass::exact);
  ASSERT_EQ(exact.graph.nodes().size(), 2u);
  EXPECT_EQ(exact.counts[0].name, "add-norm");
}

TEST(Rewrite, PatternsNameWhatIsWrong) {
  EXPECT_EQ(error_text([] { Pattern::parse("y = norm(x)"); }),
            "pattern \"y = norm(x)\": expected an operator at column 5, found \"norm(x)\"");
  EXPECT_EQ(error_text([] { Pattern::parse("y = rms_norm(x"); }),
            "pattern \"y = rms_norm(x\": expected ')' at column 15, found the end");
}

/// Layers of everything that rules find: one rewriting of 20,000 nodes, whose number of applications is that of the
/// layers.
TEST(Rewrite, TakesTimeInProportionToTheGraph) {
  constexpr std::size_t layers = 2500;
  Graph graph;
  const Dim T = Dim::symbol("T");
  const auto weight = [&](std::size_t layer, std::string_view name) {
    return graph.add_constant(fmt::format("{}.{}", layer, name), TensorType{DType::f32, {8, 8}});
  };
  ValueId hidden = graph.add_input("x", {DType::f32, {T, 8}});
  for (std::size_t i = 0; i < layers; ++i) {
    const Graph::Scope scope(graph, fmt::format("layers.{}", i));
    const ValueId q = graph.apply(OpKind::linear, {hidden, weight(i, "q")}),
                  k = graph.apply(OpKind::linear, {hidden, weight(i, "k")});
    const ValueId sum = graph.apply(OpKind::add, {q, k}), y = graph.apply(OpKind::rms_norm, {sum});
    const ValueId gate = graph.apply(OpKind::silu, {graph.apply(OpKind::linear, {y, weight(i, "gate")})});
    hidden = graph.apply(OpKind::mul, {gate, graph.apply(OpKind::linear, {y, weight(i, "up")})});
  }
  graph.add_output("y", hidden);
  ASSERT_EQ(graph.nodes().size(), 8 * layers);
  const auto start = std::chrono::steady_clock::now();
  const Rewritten result = rewrite(graph, rewrite_rules());
  std::printf("%zu nodes rewritten in %.2f s\n", graph.nodes().size(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  ASSERT_EQ(result.counts.size(), 3u);
  for (const RuleCount& count : result.counts) EXPECT_EQ(count.times, layers) << count.name;
  EXPECT_EQ(result.graph.nodes().size(), 4 * layers);
  EXPECT_EQ(find_violation(result.graph), std::nullopt);
}

}  // namespace
}  // namespace cermet
