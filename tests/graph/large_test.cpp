// Graphs of many thousand nodes: everything that walks a graph takes time in proportion to it.
#include <gtest/gtest.h>

#include <chrono>

#include "graph/common_subexpressions.hpp"
#include "graph/dead_code.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"

namespace cermet {
namespace {

constexpr int rounds = 4000;

/// Per round, of one name each: a chain of norms, a copy of the last that is not needed twice, a dead branch, two
/// results and an update of one cache.
Graph many_nodes() {
  const Dim T = Dim::symbol("T");
  Graph graph;
  graph.name = "large";
  ValueId x = graph.add_input("x", {DType::f32, {T, 2, 8}}), cache = graph.add_input("k", {DType::f32, {4, 2, 8, 8}});
  ValueId other = graph.add_input("v", {DType::f32, {4, 2, 8, 8}});
  const ValueId slots = graph.add_input("slots", {DType::i32, {T}});
  for (int i = 0; i < rounds; ++i) {
    const ValueId a = graph.apply(OpKind::rms_norm, {x}), b = graph.apply(OpKind::rms_norm, {x});
    graph.apply(OpKind::layer_norm, {x});
    x = graph.apply(OpKind::add, {a, b});
    const auto written = graph.apply_all(OpKind::kv_cache_write, {x, x, cache, other, slots});
    cache = written[0], other = written[1];
    graph.add_output("round" + std::to_string(i), x);
  }
  graph.add_output("k", cache);
  return graph;
}

TEST(LargeGraph, BuildsVerifiesSimplifiesAndComesBack) {
  const auto start = std::chrono::steady_clock::now();
  const Graph graph = many_nodes();
  ASSERT_EQ(graph.nodes().size(), 5u * rounds);
  EXPECT_EQ(graph.value(graph.nodes().back().outputs[1]).name, "kv_cache_write.4000.v_cache");
  EXPECT_EQ(graph.value(graph.nodes()[graph.nodes().size() - 4].outputs[0]).name, "rms_norm.8000");
  EXPECT_EQ(find_violation(graph), std::nullopt);
  const Graph merged = merge_common_subexpressions(graph);
  EXPECT_EQ(merged.nodes().size(), 4u * rounds);
  const Graph live = remove_dead_code(merged);
  EXPECT_EQ(live.nodes().size(), 3u * rounds);
  EXPECT_EQ(find_violation(live), std::nullopt);
  const std::string text = to_text(live);
  EXPECT_EQ(to_text(parse_graph(text)), text);
  std::printf("%zu nodes in %.2f s\n", graph.nodes().size(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace
}  // namespace cermet
