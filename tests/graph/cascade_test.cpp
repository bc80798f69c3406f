// Which chains of reductions one pass can compute, and how: derived by the repairs of graph/rewrite/derive/cascade.hpp.
#include <gtest/gtest.h>

#include "graph/rewrite/derive/cascade.hpp"
#include "graph/text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// The derivation of output y along the last axis of input x.
CascadeDerivation derive(const Graph& graph) {
  const GraphEditor editor(graph);
  Axes axes;
  const ValueId y = graph.outputs()[0].value;
  std::vector<AxisList> dims = axes.fresh(graph.type(y).dims);
  // A result for the whole row does not have the axis itself.
  const bool is_row = dims.size() == 1 || dims.back().empty();
  const AxisList axis = is_row ? axes.fresh(Dim(8)) : dims.back();
  return derive_online(editor, read_cascade(editor, axes, {y, std::move(dims)}, axis));
}

CascadeDerivation derive(const std::string& body) {
  return derive(parse_graph("graph g {\n input %x : f32[3, 8]\n" + body + "}"));
}

std::string text_of(const CascadeDerivation& derivation) {
  std::string text = derivation.is_online ? "" : derivation.reason + '\n';
  for (const std::string& step : derivation.steps) text += step + '\n';
  for (const std::string& merge : derivation.merges) text += "two parts: " + merge + '\n';
  return text;
}

/// Of a graph that tests/runtime compiles to one block.
CascadeDerivation derive_file(const std::string& name) {
  return derive(parse_graph(read_text(CERMET_SOURCE_DIR "/tests/graph/golden/derive/" + name + ".graph")));
}

TEST(Cascade, GraphsThatBecomeOneBlock) {
  for (const std::string name : {"softmax", "logsumexp", "euclidean_norm", "norm_quant"})
    expect_golden("graph/golden/derive/" + name + ".txt", text_of(derive_file(name)));
  EXPECT_EQ(text_of(derive_file("softmax")), text_of(derive(" %y = softmax(%x) : f32[3, 8]\n output y = %y\n")))
      << "the operator is the chain";
}

TEST(Cascade, Variance) {
  expect_golden(
      "graph/golden/derive/variance.txt",
      text_of(derive(" %m = reduce_mean(%x) {axes = [1], keepdims = true} : f32[3, 1]\n %d = sub(%x, %m) : f32[3, 8]\n"
                     " %q = square(%d) : f32[3, 8]\n %y = reduce_mean(%q) {axes = [1], keepdims = true} : f32[3, 1]\n "
                     "output y = %y\n")));
}

TEST(Cascade, WhatHasNoRepairIsNotOnline) {
  const CascadeDerivation sine = derive(
      " %m = reduce_max(%x) {axes = [1], keepdims = true} : f32[3, 1]\n %d = sub(%x, %m) : f32[3, 8]\n"
      " %y = reduce_sum(%d) {axes = [1], keepdims = true} : f32[3, 1]\n output y = %y\n");
  EXPECT_EQ(sine.reason, "r2 = reduce_sum((x1 - r1)): no repair for a new r1");
  const CascadeDerivation sign = derive(
      " %m = reduce_sum(%x) {axes = [1], keepdims = true} : f32[3, 1]\n %d = mul(%x, %m) : f32[3, 8]\n"
      " %y = reduce_max(%d) {axes = [1], keepdims = true} : f32[3, 1]\n output y = %y\n");
  EXPECT_EQ(sign.reason, "r2 = reduce_max(x1 * r1): the factor (r1' / r1) may be negative");
  EXPECT_TRUE(derive(" %m = reduce_sum(%x) {axes = [1], keepdims = true} : f32[3, 1]\n %d = mul(%x, %m) : f32[3, 8]\n"
                     " %y = reduce_sum(%d) {axes = [1], keepdims = true} : f32[3, 1]\n output y = %y\n")
                  .is_online)
      << "sums take any factor";
}

}  // namespace
}  // namespace cermet
