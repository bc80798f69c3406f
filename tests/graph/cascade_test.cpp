// Which chains of reductions one pass can compute, and how: derived by the repairs of graph/rewrite/derive/cascade.hpp.
#include <gtest/gtest.h>

#include "graph/rewrite/derive/cascade.hpp"
#include "graph/text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// The derivation of output y along the last axis of input x.
CascadeDerivation derive(const std::string& body) {
  const Graph graph = parse_graph(
      "graph g {\n input %x : f32[3, 8]\n input %w : f32[8]\n constant %eps : f32[] = tensor f32[] 0xacc52737\n"
      " constant %low : f32[] = tensor f32[] 0x000080bf\n" +
      body + "}");
  const GraphEditor editor(graph);
  Axes axes;
  const ValueId y = graph.outputs()[0].value;
  std::vector<AxisList> dims = axes.fresh(graph.type(y).dims);
  // A result for the whole row does not have the axis itself.
  const bool is_row = dims.size() == 1 || dims.back().empty();
  const AxisList axis = is_row ? axes.fresh(Dim(8)) : dims.back();
  return derive_online(editor, read_cascade(editor, axes, {y, std::move(dims)}, axis));
}

std::string text_of(const CascadeDerivation& derivation) {
  std::string text = derivation.is_online ? "" : derivation.reason + '\n';
  for (const std::string& step : derivation.steps) text += step + '\n';
  for (const std::string& merge : derivation.merges) text += "two parts: " + merge + '\n';
  return text;
}

constexpr const char* written_softmax =
    " %m = reduce_max(%x) {axes = [1], keepdims = true} : f32[3, 1]\n %d = sub(%x, %m) : f32[3, 8]\n %e = exp(%d) : f32[3, 8]\n"
    " %s = reduce_sum(%e) {axes = [1], keepdims = true} : f32[3, 1]\n";

TEST(Cascade, Softmax) {
  const CascadeDerivation written = derive(std::string(written_softmax) + " %y = div(%e, %s) : f32[3, 8]\n output y = %y\n");
  EXPECT_EQ(text_of(written), text_of(derive(" %y = softmax(%x) : f32[3, 8]\n output y = %y\n"))) << "the operator is the chain";
  expect_golden("graph/golden/derive/softmax.txt", text_of(written));
}

TEST(Cascade, Logsumexp) {
  expect_golden("graph/golden/derive/logsumexp.txt",
                text_of(derive(std::string(written_softmax) + " %l = log(%s) : f32[3, 1]\n %y = add(%m, %l) : f32[3, 1]\n output y = %y\n")));
}

TEST(Cascade, EuclideanNorm) {
  expect_golden("graph/golden/derive/euclidean_norm.txt",
                text_of(derive(" %q = square(%x) : f32[3, 8]\n %s = reduce_sum(%q) {axes = [1], keepdims = true} : f32[3, 1]\n"
                               " %r = sqrt(%s) : f32[3, 1]\n %y = div(%x, %r) : f32[3, 8]\n output y = %y\n")));
}

constexpr const char* norm =
    " %q = square(%x) : f32[3, 8]\n %s = reduce_mean(%q) {axes = [1], keepdims = true} : f32[3, 1]\n %t = add(%s, %eps) : f32[3, 1]\n"
    " %r = rsqrt(%t) : f32[3, 1]\n %n = mul(%x, %r) : f32[3, 8]\n %z = mul(%n, %w) : f32[3, 8]\n";

TEST(Cascade, RmsNormAndDynamicQuantization) {
  expect_golden("graph/golden/derive/norm_quant.txt",
                text_of(derive(std::string(norm) + " %a = abs(%z) : f32[3, 8]\n %m = reduce_max(%a) {axes = [1], keepdims = true} : f32[3, 1]\n"
                                                   " %y = div(%z, %m) : f32[3, 8]\n output y = %y\n")));
}

TEST(Cascade, Variance) {
  expect_golden("graph/golden/derive/variance.txt",
                text_of(derive(" %m = reduce_mean(%x) {axes = [1], keepdims = true} : f32[3, 1]\n %d = sub(%x, %m) : f32[3, 8]\n"
                               " %q = square(%d) : f32[3, 8]\n %y = reduce_mean(%q) {axes = [1], keepdims = true} : f32[3, 1]\n output y = %y\n")));
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
