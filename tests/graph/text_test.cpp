#include "graph/text.hpp"

#include <gtest/gtest.h>

#include "graph/verify.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

bool same(const Graph& a, const Graph& b) {
  const auto values = [](const Value& x, const Value& y) {
    return x.name == y.name && x.type == y.type && x.kind == y.kind && x.producer == y.producer && x.source == y.source;
  };
  const auto nodes = [](const Node& x, const Node& y) {
    return x.op == y.op && x.inputs == y.inputs && x.outputs == y.outputs && x.attributes == y.attributes &&
           x.scope == y.scope && x.super_kernel == y.super_kernel;
  };
  const auto outputs = [](const GraphOutput& x, const GraphOutput& y) {
    return x.name == y.name && x.value == y.value;
  };
  return a.name == b.name && a.ranges() == b.ranges() &&
         std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end(), values) &&
         std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(), nodes) &&
         std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), b.outputs().end(), outputs);
}

/// A layer with every kind of line: optional operands, attributes of each type, several results, state, two scopes.
Graph layer() {
  const Dim T = Dim::symbol("T");
  Graph graph;
  graph.name = "layer";
  const ValueId x = graph.add_input("x", {DType::bf16, {T, 64}}), slots = graph.add_input("slots", {DType::i32, {T}});
  const ValueId k_cache = graph.add_input("k_cache", {DType::bf16, {8, 2, 16, 32}}),
                v_cache = graph.add_input("v_cache", {DType::bf16, {8, 2, 16, 32}});
  const Graph::Scope scope(graph, "layers.0");
  ValueId y;
  {
    const Graph::Scope attention(graph, "attention");
    const ValueId normed = graph.apply(
        OpKind::rms_norm, {x, graph.add_constant("layers.0.norm.weight", {DType::bf16, {64}})}, {{"eps", 1e-5}});
    const ValueId k =
        graph.apply(OpKind::linear, {normed, graph.add_constant("layers.0.k.weight", {DType::bf16, {64, 64}})}, {},
                    "layers.0.attention.k");
    const ValueId heads = graph.apply(OpKind::reshape, {k}, {{"shape", Ints{0, 2, 32}}});
    y = graph.apply_all(OpKind::kv_cache_write, {heads, heads, k_cache, v_cache, slots}, {{"layout", "hnd"}})[0];
  }
  const ValueId wide = graph.apply(OpKind::rms_norm, {x}, {{"out_dtype", "f32"}, {"weight_offset", 1.0}});
  graph.add_output("cache", y);
  graph.add_output("wide", wide);
  return graph;
}

TEST(GraphText, IsReadable) { expect_golden("graph/golden/layer.graph", to_text(layer())); }

TEST(GraphText, ComesBackAsTheSameGraph) {
  const Graph graph = layer();
  const std::string text = to_text(graph);
  EXPECT_TRUE(same(parse_graph(text), graph));
  EXPECT_EQ(to_text(parse_graph(text)), text);
}

TEST(GraphText, HostileNamesAndValuesComeBack) {
  const Dim T = Dim::symbol("T");
  for (const std::string name : {"", "a b", "\"", "\\", "}\n// %x", "\xff\x01", "100%", "été"}) {
    Graph graph;
    graph.name = name;
    const ValueId x = graph.add_input("in" + name, {DType::f32, {T * 8 + -3, 5}});
    std::optional<Graph::Scope> scope;
    if (!name.empty()) scope.emplace(graph, name);
    const ValueId y = graph.apply(OpKind::rms_norm, {x}, {{"eps", 0.1 + 0.2}}, "out" + name);
    graph.add_output("o" + name, y);
    EXPECT_TRUE(same(parse_graph(to_text(graph)), graph)) << to_text(graph);
  }
}

TEST(GraphText, AttributesComeBackWithTheirTypes) {
  Graph graph = layer();
  std::vector<Node> nodes = graph.nodes();
  nodes[0].attributes = {{"a", true},
                         {"b", std::int64_t{-9007199254740993}},
                         {"c", 1e300},
                         {"d", -0.0},
                         {"e", "say \"},] = \\ \n"},
                         {"f", Ints{}},
                         {"g", Ints{1, -2}},
                         {"h", 8.0},
                         {"i", HUGE_VAL},
                         {"j", Floats{0.5, -2}},
                         {"k", Strings{"a, b", "]", "}"}},
                         {"l", TensorData::of<std::int32_t>({DType::i32, {2}}, {7, -1})},
                         {"m", make_subgraph(layer())},
                         {"n", Floats{}},
                         {"o", Strings{}}};
  graph = Graph::from_parts("attributes", graph.values(), nodes, graph.outputs());
  const Graph back = parse_unverified_graph(to_text(graph));
  EXPECT_TRUE(same(back, graph)) << to_text(graph);
  EXPECT_TRUE(same(back.nodes()[0].attributes.graph("m"), layer()));
}

/// Symbols with ranges, dimensions of several of them, and constants of all three kinds.
TEST(GraphText, ConstantsAndRangesComeBack) {
  const Dim B = Dim::symbol("B"), T = Dim::symbol("T");
  Graph graph;
  graph.name = "constants";
  graph.set_range(Symbol("T"), {1, 4096});
  graph.set_range(Symbol("B"), {2, DimRange{}.greatest});
  const ValueId x = graph.add_input("x", {DType::f32, {B * T, ceil_div(T, 2), dim_min(T, 8), 4}});
  const ValueId q = graph.add_constant("q.weight", {DType::f32, {6, 4}}),
                k = graph.add_constant("k.weight", {DType::f32, {2, 4}});
  const ValueId both = graph.add_constant("qk.weight", {OpKind::concat, {q, k}, {{"axis", std::int64_t{0}}}});
  const ValueId second = graph.add_constant("half", {OpKind::split, {both}, {{"parts", std::int64_t{2}}}, 1});
  const ValueId scale = graph.add_constant("scale", TensorData::of<float>({DType::f32, {4}}, {1, 2, 3, -0.5f}));
  graph.add_output("y", graph.apply(OpKind::linear, {graph.apply(OpKind::rms_norm, {x, scale}), both}));
  graph.add_output("half", second);
  EXPECT_EQ(find_violation(graph), std::nullopt);
  EXPECT_TRUE(same(parse_graph(to_text(graph)), graph)) << to_text(graph);
  expect_golden("graph/golden/constants.graph", to_text(graph));
}

TEST(GraphText, ErrorsNameTheLine) {
  const auto error = [](std::string_view line) {
    return error_text(
        [&] { parse_graph(fmt::format("graph g {{\n\n  // a remark\n  input %x : f32[T, 8]\n  {}\n}}\n", line)); });
  };
  EXPECT_EQ(error("%y = rms_norm(%x) : f32[T, 8]"), "no error");
  EXPECT_EQ(error("%y = rms_norm(%z) : f32[T, 8]"),
            "graph text, line 5: value %z: expected a value of the graph, found none of that name");
  EXPECT_EQ(error("output y = %\"z z\""),
            "graph text, line 5: value %\"z z\": expected a value of the graph, found none of that name");
  EXPECT_EQ(error("%y = norm(%x) : f32[T, 8]"), "graph text, line 5: expected an operator, found 'norm'");
  EXPECT_EQ(error("%y = rms_norm(%x : f32[T, 8]"),
            "graph text, line 5: expected ')' at column 20, found \": f32[T, 8]\"");
  EXPECT_EQ(error("%y = rms_norm(%x) : f33[T, 8]"),
            "graph text, line 5: type \"f33[T, 8]\": expected an element type (" + dtypes::all.to_string() +
                ") at column 1, found \"f33[T, 8]\"");
  EXPECT_EQ(error("%y = rms_norm(%x) {eps = } : f32[T, 8]"),
            "graph text, line 5: attribute value \"\": expected true, false, a number, a quoted string, a list, a "
            "tensor or a graph at column 1, found the end");
  EXPECT_EQ(error("%y = rms_norm(%x) {eps = \"} : f32[T, 8]"),
            "graph text, line 5: expected a string with its closing quote at column 28, found \"\\\"} : f32[T, 8]\"");
  EXPECT_EQ(error("%y = rms_norm(%x)"), "graph text, line 5: expected ':' at column 20, found the end of the line");
  EXPECT_EQ(error("%y = rms_norm(%x) : f32[T, 8] // a b"),
            "graph text, line 5: expected the end of the line at column 38, found \"b\"");
  EXPECT_EQ(error("input x : f32[T, 8]"),
            "graph text, line 5: expected a value such as %x at column 9, found \"x : f32[T, 8]\"");
  EXPECT_EQ(error("input %y : f32"),
            "graph text, line 5: expected a type such as bf16[T, 64] at column 14, found \"f32\"");
  EXPECT_EQ(error("symbol T = 4"), "graph text, line 5: expected ':' at column 12, found \"= 4\"");
  EXPECT_EQ(error("symbol T : 4"), "graph text, line 5: expected '..' at column 15, found the end of the line");
  EXPECT_EQ(error("constant %c : f32[2] = tensor f32[2] 0x00"),
            "graph text, line 5: tensor f32[2]: expected 8 bytes, found 1");
  EXPECT_EQ(error("constant %c : f32[2] = stack(%a)"), "graph text, line 5: expected an operator, found 'stack'");
  EXPECT_EQ(error("constant %c : f32[2] = concat(%a)"),
            "graph text, line 5: value %a: expected a value of the graph, found none of that name");
  EXPECT_EQ(error("%y = rms_norm(%x) {body = graph \"graph b {\"} : f32[T, 8]"),
            "graph text, line 5: attribute 'body': graph text, line 2: expected '}', found the end");
  EXPECT_EQ(error("} "), "no error");
  EXPECT_EQ(error_text([] { parse_graph(""); }), "graph text, line 1: expected 'graph NAME {', found the end");
  EXPECT_EQ(error_text([] { parse_graph("graph g {\n"); }), "graph text, line 2: expected '}', found the end");
  EXPECT_EQ(error_text([] { parse_graph("digraph g {\n"); }),
            "graph text, line 1: expected 'graph' at column 1, found \"digraph g {\"");
}

/// No prefix, deletion or changed byte of a text may crash the parser or the verifier.
TEST(GraphText, DamagedTextIsAnErrorOrAGraph) {
  const std::string text = to_text(layer());
  const auto survives = [](const std::string& damaged) { error_text([&] { parse_graph(damaged); }); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    survives(text.substr(0, i));
    survives(text.substr(0, i) + text.substr(i + 1));
    for (const char c : {'"', '%', '9', '-', '\n', '}', ']'}) {
      std::string damaged = text;
      damaged[i] = c;
      survives(damaged);
    }
  }
}

}  // namespace
}  // namespace cermet
