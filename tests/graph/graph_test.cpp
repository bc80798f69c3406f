#include "graph/graph.hpp"

#include <gtest/gtest.h>

#include "graph/verify.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

const Dim T = Dim::symbol("T");

TEST(Graph, InfersTypesAndNamesValuesAfterScopeAndOperator) {
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::bf16, {T, 64}}), w = graph.add_constant("w", {DType::bf16, {64}});
  const Graph::Scope layer(graph, "layers.0");
  ValueId a, b;
  {
    const Graph::Scope part(graph, "attention");
    a = graph.apply(OpKind::rms_norm, {x, w});
    b = graph.apply(OpKind::rms_norm, {a, w}, {{"out_dtype", "f32"}});
  }
  const ValueId c = graph.apply(OpKind::rms_norm, {b});
  const ValueId d = graph.apply(OpKind::rms_norm, {c}, {}, "normed");
  EXPECT_EQ(graph.value(a).name, "layers.0.attention.rms_norm");
  EXPECT_EQ(graph.value(b).name, "layers.0.attention.rms_norm.2");
  EXPECT_EQ(graph.value(c).name, "layers.0.rms_norm");
  EXPECT_EQ(graph.value(d).name, "normed");
  EXPECT_EQ(graph.type(b).to_string(), "f32[T, 64]");
  EXPECT_EQ(graph.nodes()[1].scope, "layers.0.attention");
  EXPECT_EQ(graph.nodes()[2].inputs.size(), 2u) << "optional operands that are not given keep their place";
  EXPECT_EQ(graph.find("normed"), d);
  EXPECT_EQ(graph.find("absent"), ValueId{});
  EXPECT_EQ(find_violation(graph), std::nullopt);
}

TEST(Graph, ProblemsCarryConstantsAndMaximum) {
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::f32, {T, 8}}), w = graph.add_constant("w", {DType::f32, {8}});
  graph.apply(OpKind::rms_norm, {x, w});
  SymbolValues maximum;
  maximum.set(Symbol("T"), 12);
  const Problem problem = graph.problem_of(graph.nodes()[0], maximum);
  EXPECT_FALSE(problem.is_constant(0));
  EXPECT_TRUE(problem.is_constant(1));
  EXPECT_EQ(problem.size(0, 0), 12);
}

TEST(Graph, ErrorsNameScopeAndOperand) {
  Graph graph;
  graph.name = "demo";
  const ValueId x = graph.add_input("x", {DType::f32, {T, 8}}), w = graph.add_constant("w", {DType::f32, {9}});
  const Graph::Scope scope(graph, "layers.3.mlp");
  EXPECT_EQ(error_text([&] {
              graph.apply(OpKind::rms_norm, {x, w});
            }),
            "layers.3.mlp: rms_norm: operand 1 (weight): expected dimension -1 to be 8 (that of x), found f32[9]");
  EXPECT_EQ(error_text([&] { graph.add_input("x", {}); }),
            "graph 'demo': value 'x': expected a name of its own, found one that is taken");
  EXPECT_EQ(error_text([&] {
              graph.add_constant("weight", {DType::f32, {T}});
            }),
            "graph 'demo': constant 'weight': expected constant dimensions, found f32[T]");
  EXPECT_EQ(graph.nodes().size(), 0u) << "a refused node leaves nothing behind";
  EXPECT_EQ(graph.values().size(), 2u);
}

TEST(Graph, KnowsWhoReadsAValue) {
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::f32, {4}});
  const ValueId y = graph.apply(OpKind::add, {x, x}), z = graph.apply(OpKind::add, {y, x});
  EXPECT_EQ(std::vector(graph.uses(x).begin(), graph.uses(x).end()), (std::vector<Use>{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(std::vector(graph.uses(y).begin(), graph.uses(y).end()), (std::vector<Use>{{1, 0}}));
  EXPECT_TRUE(graph.uses(z).empty());
}

TEST(Graph, ConstantsHoldDataOrExpressions) {
  Graph graph;
  graph.name = "demo";
  const ValueId w = graph.add_constant("w", TensorType{DType::f32, {2, 3}}),
                x = graph.add_input("x", {DType::f32, {2, 3}});
  const ValueId stacked = graph.add_constant("stacked", {OpKind::concat, {w, w}, {}, 0});
  EXPECT_EQ(graph.type(stacked).to_string(), "f32[4, 3]");
  EXPECT_EQ(graph.value(stacked).expression()->inputs.size(), 2u);
  EXPECT_EQ(graph.value(graph.add_constant("two", TensorData::of<float>({DType::f32, {}}, {2}))).data()->bytes().size(),
            4u);
  EXPECT_TRUE(graph.uses(w).empty()) << "uses are those of nodes";
  EXPECT_EQ(error_text([&] {
              graph.add_constant("bad", {OpKind::concat, {w, x}, {}, 0});
            }),
            "constant 'bad': concat: expected constants to compute a constant of, found 'x'");
  EXPECT_EQ(error_text([&] {
              graph.add_constant("bad", {OpKind::linear, {w, stacked, w}, {}, 0});
            }),
            "constant 'bad': linear: operand 2 (bias): expected dimensions [4] (N of w), found f32[2, 3]");
  EXPECT_EQ(error_text([&] {
              graph.add_constant("bad", {OpKind::concat, {w}, {}, 1});
            }),
            "constant 'bad': concat: expected a result below 1, found 1");
  EXPECT_EQ(error_text([&] {
              graph.add_constant("bad", {OpKind::kv_cache_write, {w, w, w, w, w}, {}, 0});
            }),
            "constant 'bad': kv_cache_write: expected an operator that updates nothing in place");
  EXPECT_EQ(find_violation(graph), std::nullopt);
}

TEST(Graph, KeepsRangesOfItsSymbols) {
  Graph graph;
  graph.name = "demo";
  graph.set_range(Symbol("T"), {1, 64});
  graph.set_range(Symbol("B"), {1, 8});
  graph.set_range(Symbol("T"), {1, 128});
  EXPECT_EQ(graph.ranges(), (SymbolRanges{{Symbol("B"), {1, 8}}, {Symbol("T"), {1, 128}}}));
  EXPECT_EQ((Dim::symbol("B") * T + 1).bounds(graph.ranges()), (DimRange{2, 1025}));
  EXPECT_EQ(error_text([&] {
              graph.set_range(Symbol("T"), {9, 8});
            }),
            "graph 'demo': symbol 'T': expected a range from 0 on that is not empty, found [9, 8]");
}

}  // namespace
}  // namespace cermet
