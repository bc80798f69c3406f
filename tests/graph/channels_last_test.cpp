// The order of channels changes; what the graph computes does not.
#include "graph/channels_last.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/evaluate.hpp"

namespace cermet {
namespace {

std::int64_t count(const Graph& graph, OpKind op) { return std::ranges::count(graph.nodes(), op, &Node::op); }

/// The reordered graph, which computes the same bits.
Graph converted(const std::string& text) {
  const Graph graph = parse_graph(text);
  const Graph last = with_channels_last(graph);
  verify(last);
  SymbolValues symbols;
  symbols.set(Symbol("B"), 2);
  EXPECT_EQ(Evaluation(graph, symbols).outputs(), Evaluation(last, symbols).outputs()) << to_text(last);
  EXPECT_EQ(graph.outputs().size(), last.outputs().size());
  return last;
}

TEST(ChannelsLast, ABlockWithAResidualStaysInOneOrder) {
  const Graph graph = converted(R"(graph g {
  input %x : f32[B, 4, 6, 5]
  constant %w : f32[4, 4, 3, 3]
  constant %scale : f32[4, 1, 1]
  %y = conv(%x, %w) {pads = [1, 1, 1, 1]} : f32[B, 4, 6, 5]
  %a = relu(%y) : f32[B, 4, 6, 5]
  %m = mul(%a, %scale) : f32[B, 4, 6, 5]
  %z = conv(%m, %w) {pads = [1, 1, 1, 1]} : f32[B, 4, 6, 5]
  %s = add(%z, %x) : f32[B, 4, 6, 5]
  output y = %s
})");
  EXPECT_EQ(count(graph, OpKind::transpose), 2) << "one in, one out\n" << to_text(graph);
}

TEST(ChannelsLast, JoinsSlicesPadsAndReductions) {
  const Graph graph = converted(R"(graph g {
  input %x : f32[2, 4, 6, 5]
  constant %w : f32[4, 4, 1, 1]
  %y = conv(%x, %w) : f32[2, 4, 6, 5]
  %p = pad(%y) {pads = [0, 0, 1, 2, 0, 0, 0, 1]} : f32[2, 4, 7, 8]
  %c = concat(%p, %p) {axis = 1} : f32[2, 8, 7, 8]
  %t = slice(%c) {axes = [1, -1], starts = [2, 0], ends = [7, 4]} : f32[2, 5, 7, 4]
  %a, %b = split(%t) {axis = 1, sizes = [2, 3]} : f32[2, 2, 7, 4], f32[2, 3, 7, 4]
  %m = reduce_mean(%b) {axes = [2, 3], keepdims = true} : f32[2, 3, 1, 1]
  %v = reduce_max(%a) {axes = [2, 3]} : f32[2, 2]
  %f = reshape(%m) {shape = [2, 3]} : f32[2, 3]
  output f = %f
  output v = %v
})");
  EXPECT_EQ(count(graph, OpKind::transpose), 1) << to_text(graph);
}

TEST(ChannelsLast, TheGraphsOwnTranspositionsFallAway) {
  const Graph graph = converted(R"(graph g {
  input %x : f32[2, 4, 6, 5]
  constant %w : f32[4, 1, 3, 3]
  constant %l : f32[4, 4]
  constant %gamma : f32[4, 1, 1]
  %y = conv(%x, %w) {pads = [1, 1, 1, 1], group = 4} : f32[2, 4, 6, 5]
  %t = transpose(%y) {permutation = [0, 2, 3, 1]} : f32[2, 6, 5, 4]
  %n = linear(%t, %l) : f32[2, 6, 5, 4]
  %u = transpose(%n) {permutation = [0, 3, 1, 2]} : f32[2, 4, 6, 5]
  %m = mul(%u, %gamma) : f32[2, 4, 6, 5]
  %s = add(%m, %x) : f32[2, 4, 6, 5]
  output s = %s
})");
  EXPECT_EQ(count(graph, OpKind::transpose), 2) << "one in, one out\n" << to_text(graph);
}

TEST(ChannelsLast, OthersReadThePlainOrder) {
  const Graph graph = converted(R"(graph g {
  input %x : f32[2, 4, 6, 5]
  input %r : f32[6, 5]
  constant %w : f32[3, 4, 3, 3]
  %y = conv(%x, %w) : f32[2, 3, 4, 3]
  %f = reshape(%y) {shape = [2, 36]} : f32[2, 36]
  %s = softmax(%y) : f32[2, 3, 4, 3]
  output f = %f
  output s = %s
})");
  EXPECT_EQ(count(graph, OpKind::transpose), 2) << "the second is shared\n" << to_text(graph);
  const Graph plain = parse_graph("graph g {\n  input %x : f32[2, 4]\n  %y = relu(%x) : f32[2, 4]\n  output y = %y\n}");
  EXPECT_EQ(to_text(with_channels_last(plain)), to_text(plain));
}

TEST(ChannelsLast, OfOneAndThreeSpatialAxes) {
  for (const char* text : {R"(graph g {
  input %x : f32[2, 4, 9]
  constant %w : f32[6, 2, 3]
  %y = conv(%x, %w) {group = 2, strides = [2]} : f32[2, 6, 4]
  %z = tanh(%y) : f32[2, 6, 4]
  output z = %z
})",
                           R"(graph g {
  input %x : f32[1, 2, 3, 4, 5]
  constant %w : f32[2, 2, 2, 2, 2]
  %y = conv(%x, %w) : f32[1, 2, 2, 3, 4]
  %z = tanh(%y) : f32[1, 2, 2, 3, 4]
  output z = %z
})"})
    converted(text);
}

}  // namespace
}  // namespace cermet
