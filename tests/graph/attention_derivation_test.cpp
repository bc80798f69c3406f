// Attention derived from any spelling of it, and what must not be taken for it.
#include <gtest/gtest.h>

#include "graph/rewrite/derive/attention_form.hpp"
#include "graph/rewrite/rule.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/evaluate.hpp"
#include "tests/graph/spelling.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

bool is_replaced(OpKind op) {
  return op == OpKind::matmul || op == OpKind::softmax || op == OpKind::exp || op == OpKind::reduce_max ||
         op == OpKind::reduce_sum || op == OpKind::reciprocal;
}

/// What the last matmul of a graph is said to be.
AttentionOrReason derive_last(const GraphEditor& editor, Axes& axes) {
  NodeId matmul = no_node;
  for (NodeId n = editor.first(); n != no_node; n = editor.next(n))
    if (editor.node(n).op == OpKind::matmul) matmul = n;
  return derive_attention(editor, axes, matmul, false);
}

TEST(AttentionDerivation, EverySpellingIsOneBlock) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Graph before = Spelling(seed).graph();
    const double allowed = Spelling(seed).allowed();
    const Graph after = rewrite(before, rewrite_rules()).graph;
    verify(after);
    const auto blocks = std::ranges::count(after.nodes(), OpKind::flash_attention, &Node::op);
    Axes axes;
    ASSERT_EQ(blocks, 1) << seed << ": " << derive_last(GraphEditor(before), axes).reason << '\n' << to_text(before);
    ASSERT_TRUE(std::ranges::none_of(after.nodes(), is_replaced, &Node::op)) << seed << '\n' << to_text(after);
    const auto expected = Evaluation(before, {}).outputs().at("o"), found = Evaluation(after, {}).outputs().at("o");
    ASSERT_EQ(expected.size(), found.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(expected[i], found[i], allowed) << seed << ", element " << i << '\n'
                                                  << to_text(before) << to_text(after);
  }
}

constexpr const char* begin = R"(graph g {
  input %q : f32[2, 3, 4]
  input %k : f32[2, 5, 4]
  input %v : f32[2, 5, 6]
  input %w : f32[5]
  input %row : f32[3, 1]
  constant %low : f32[] = tensor f32[] 0x000080ff
  constant %c : f32[] = tensor f32[] 0x0000003f
  constant %seen : bool[5] = tensor bool[5] 0x0100010101
  %s = matmul(%q, %k) {transpose_b = true} : f32[2, 3, 5]
)";

struct Kept {
  const char *body, *reason;
};

TEST(AttentionDerivation, LeavesAloneWhatIsNone) {
  const Kept list[] = {
      {" %t = transpose(%s) {permutation = [0, 2, 1]} : f32[2, 5, 3]\n %p = softmax(%t) : f32[2, 5, 3]\n"
       " %u = transpose(%p) {permutation = [0, 2, 1]} : f32[2, 3, 5]\n %o = matmul(%u, %v) : f32[2, 3, 6]\n output o = "
       "%o\n",
       "neither operand is a softmax along the axis that is summed"},
      {" %x = mul(%s, %w) : f32[2, 3, 5]\n %p = softmax(%x) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n "
       "output o = %o\n",
       "scores: mul of scores by 'w', which is not one number"},
      {" %x = mul(%s, %row) : f32[2, 3, 5]\n %p = softmax(%x) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n "
       "output o = %o\n",
       "scores: mul of scores by 'row', which is not one number"},
      {" %p = softmax(%s) : f32[2, 3, 5]\n %x = mul(%p, %w) : f32[2, 3, 5]\n %o = matmul(%x, %v) : f32[2, 3, 6]\n "
       "output o = %o\n",
       "neither operand is a softmax along the axis that is summed"},
      {" %p = softmax(%s) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n output o = %o\n output p = %p\n",
       "'p' is also read elsewhere"},
      {" %p = softmax(%s) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n %n = neg(%s) : f32[2, 3, 5]\n output o "
       "= %o\n output n = %n\n",
       "'s' is also read elsewhere"},
      {" %x = tanh(%s) : f32[2, 3, 5]\n %p = softmax(%x) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n output "
       "o = %o\n",
       "scores: tanh of 's' is not linear in a product"},
      {" %x = cast(%s) {out_dtype = \"bf16\"} : bf16[2, 3, 5]\n %p = softmax(%x) {out_dtype = \"f32\"} : f32[2, 3, "
       "5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n"
       " output o = %o\n",
       "scores: cast of 's' is not linear in a product"},
      {" %p = softmax(%s) {log = true} : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n output o = %o\n",
       "neither operand is a softmax along the axis that is summed"},
      {" %a = where(%seen, %s, %c) : f32[2, 3, 5]\n %x = where(%seen, %a, %low) : f32[2, 3, 5]\n %p = softmax(%x) : "
       "f32[2, 3, 5]\n"
       " %o = matmul(%p, %v) : f32[2, 3, 6]\n output o = %o\n",
       "scores: masks give different scores"},
      {" %a = where(%seen, %s, %c) : f32[2, 3, 5]\n %x = add(%a, %w) : f32[2, 3, 5]\n %p = softmax(%x) : f32[2, 3, 5]\n"
       " %o = matmul(%p, %v) : f32[2, 3, 6]\n output o = %o\n",
       "scores: something is added to the score of masked keys"},
      {" %m = reduce_max(%s) {axes = [2], keepdims = true} : f32[2, 3, 1]\n %d = sub(%s, %m) : f32[2, 3, 5]\n %e = "
       "exp(%d) : f32[2, 3, 5]\n"
       " %z = reduce_sum(%d) {axes = [2], keepdims = true} : f32[2, 3, 1]\n %p = div(%e, %z) : f32[2, 3, 5]\n %o = "
       "matmul(%p, %v) : f32[2, 3, 6]\n"
       " output o = %o\n",
       "neither operand is a softmax along the axis that is summed"},
  };
  std::vector<Rule> rules;  // others would say some of these in a form that is one
  std::ranges::copy_if(rewrite_rules(), std::back_inserter(rules),
                       [](const Rule& rule) { return rule.name.starts_with("attention"); });
  ASSERT_FALSE(rules.empty());
  for (const Kept& kept : list) {
    const Graph graph = parse_graph(std::string(begin) + kept.body + "}");
    Axes axes;
    const AttentionOrReason found = derive_last(GraphEditor(graph), axes);
    EXPECT_FALSE(found.form) << kept.body;
    EXPECT_EQ(found.reason, kept.reason) << kept.body;
    EXPECT_EQ(std::ranges::count(rewrite(graph, rules).graph.nodes(), OpKind::flash_attention, &Node::op), 0)
        << kept.body;
  }
}

TEST(AttentionDerivation, SaysItsSteps) {
  const Graph graph =
      parse_graph(std::string(begin) +
                  " %a = mul(%s, %c) : f32[2, 3, 5]\n %b = sub(%a, %w) : f32[2, 3, 5]\n %x = where(%seen, %b, %low) : "
                  "f32[2, 3, 5]\n"
                  " %p = softmax(%x) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n output o = %o\n}");
  Axes axes;
  const AttentionOrReason found = derive_last(GraphEditor(graph), axes);
  ASSERT_TRUE(found.form) << found.reason;
  std::string text;
  for (const std::string& step : found.form->steps) text += step + '\n';
  expect_golden("graph/golden/derive/attention.txt", text);
}

/// Sequences of any number and length keep their symbols.
TEST(AttentionDerivation, AMaskThatHidesNothingIsNoBias) {
  for (const bool hides : {false, true}) {
    const std::string constants = fmt::format(R"(  constant %all : bool[1, 3, 1] = tensor bool[1, 3, 1] 0x01{}01
  constant %wide : bool[2, 3, 5] = expand(%all) {{shape = [2, 3, 5]}}
  constant %zero : f32[] = tensor f32[] 0x00000000
  constant %mask : f32[2, 3, 5] = where(%wide, %zero, %low)
)",
                                              hides ? "00" : "01");
    const std::string nodes =
        " %x = add(%s, %mask) : f32[2, 3, 5]\n %p = softmax(%x) : f32[2, 3, 5]\n %o = matmul(%p, %v) : f32[2, 3, 6]\n "
        "output o = %o\n}\n";
    std::string text = begin;
    text.insert(text.find("  %s = "), constants);
    const Graph after = rewrite(parse_graph(text + nodes), rewrite_rules()).graph;
    const auto block = std::ranges::find(after.nodes(), OpKind::flash_attention, &Node::op);
    ASSERT_NE(block, after.nodes().end()) << to_text(after);
    EXPECT_EQ(block->inputs.size() > 7 && block->inputs[7], hides) << to_text(after);
  }
}

TEST(AttentionDerivation, TakesSymbols) {
  const Graph graph = parse_graph(R"(graph g {
  input %x : f32[B, S, 24]
  constant %c : f32[] = tensor f32[] 0x0000003f
  %n = neg(%x) : f32[B, S, 24]
  %a, %b, %d = split(%n) {axis = -1, sizes = [8, 8, 8]} : f32[B, S, 8], f32[B, S, 8], f32[B, S, 8]
  %q = reshape(%a) {shape = [0, 0, 2, 4]} : f32[B, S, 2, 4]
  %k = reshape(%b) {shape = [0, 0, 2, 4]} : f32[B, S, 2, 4]
  %v = reshape(%d) {shape = [0, 0, 2, 4]} : f32[B, S, 2, 4]
  %qt = transpose(%q) {permutation = [0, 2, 1, 3]} : f32[B, 2, S, 4]
  %kt = transpose(%k) {permutation = [0, 2, 3, 1]} : f32[B, 2, 4, S]
  %vt = transpose(%v) {permutation = [0, 2, 1, 3]} : f32[B, 2, S, 4]
  %s = matmul(%qt, %kt) : f32[B, 2, S, S]
  %m = mul(%s, %c) : f32[B, 2, S, S]
  %p = softmax(%m) : f32[B, 2, S, S]
  %o = matmul(%p, %vt) : f32[B, 2, S, 4]
  %t = transpose(%o) {permutation = [0, 2, 1, 3]} : f32[B, S, 2, 4]
  %y = reshape(%t) {shape = [0, 0, 8]} : f32[B, S, 8]
  output y = %y
}
)");
  const Graph after = rewrite(graph, rewrite_rules()).graph;
  verify(after);
  EXPECT_EQ(std::ranges::count(after.nodes(), OpKind::flash_attention, &Node::op), 1) << to_text(after);
  EXPECT_EQ(std::ranges::count(after.nodes(), OpKind::transpose, &Node::op), 0) << to_text(after);
  SymbolValues symbols;
  symbols.set(Symbol("B"), 2);
  symbols.set(Symbol("S"), 5);
  const auto expected = Evaluation(graph, symbols).outputs().at("y"),
             found = Evaluation(after, symbols).outputs().at("y");
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], found[i], 1e-5) << i;
}

}  // namespace
}  // namespace cermet
