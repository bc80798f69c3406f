// Marks of nodes that become one launch: made by scopes, kept by the text form, the editor and every rewriting, which
// never crosses their borders.
#include <gtest/gtest.h>

#include "graph/channels_last.hpp"
#include "graph/common_subexpressions.hpp"
#include "graph/dead_code.hpp"
#include "graph/editor.hpp"
#include "graph/rewrite/rule.hpp"
#include "graph/super_kernel_options.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/evaluate.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// "a:sp1 b:- c:outside"
std::string marks_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    const std::int32_t mark = node.super_kernel;
    const std::string name = mark >= 0                ? graph.super_kernels()[static_cast<std::size_t>(mark)].name
                             : mark == Node::excluded ? "outside"
                                                      : "-";
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", graph.value(node.outputs[0]).name, name);
  }
  return text;
}

/// Five nodes in a row: a in sp1, b in none though inside, c in sp1 again, d in another, e in none.
Graph chain() {
  Graph graph;
  graph.name = "chain";
  ValueId x = graph.add_input("x", {DType::f32, {4, 8}});
  {
    const auto scope = graph.super_kernel("sp1", "width=4:profile=1");
    x = graph.apply(OpKind::silu, {x}, {}, "a");
    {
      const auto apart = graph.super_kernel();
      x = graph.apply(OpKind::neg, {x}, {}, "b");
    }
    x = graph.apply(OpKind::silu, {x}, {}, "c");
  }
  {
    const auto scope = graph.super_kernel("other one");
    x = graph.apply(OpKind::neg, {x}, {}, "d");
  }
  graph.add_output("y", graph.apply(OpKind::silu, {x}, {}, "e"));
  return graph;
}

TEST(SuperKernelMarks, FollowScopes) { EXPECT_EQ(marks_of(chain()), "a:sp1 b:outside c:sp1 d:other one e:-"); }

TEST(SuperKernelMarks, AScopeIsEnteredAgain) {
  Graph graph = chain();
  ValueId y = graph.find("e");
  {
    const auto scope = graph.super_kernel("sp1");
    y = graph.apply(OpKind::neg, {y}, {}, "f");
  }
  {
    const auto scope = graph.super_kernel("sp1", "profile=1:width=4");
    graph.apply(OpKind::neg, {y}, {}, "g");
  }
  EXPECT_EQ(graph.super_kernels().size(), 2u);
  EXPECT_EQ(marks_of(graph), "a:sp1 b:outside c:sp1 d:other one e:- f:sp1 g:sp1");
}

TEST(SuperKernelMarks, WrongScopesAreRefused) {
  Graph graph = chain();
  EXPECT_EQ(error_text([&] { const auto scope = graph.super_kernel("sp1", "width=5"); }),
            "graph 'chain': super-kernel 'sp1': expected its options, 'width=4:profile=1', or none, found 'width=5'");
  EXPECT_EQ(error_text([&] { const auto scope = graph.super_kernel("new", "breadth=5"); }),
            "graph 'chain': super-kernel 'new': super-kernel options: expected one of stream-fusion, "
            "strict-scope-check, prefetch, early-start, "
            "width, debug-sync-all, profile, found \"breadth\"");
  EXPECT_EQ(error_text([&] { const auto scope = graph.super_kernel("", "width=5"); }),
            "graph 'chain': super-kernel without a name: expected no options, because its nodes are in none, found "
            "'width=5'");
  EXPECT_EQ(error_text([&] { graph.add_super_kernel(""); }),
            "graph 'chain': super-kernel '': expected a name, found an empty one");
  EXPECT_EQ(graph.super_kernels().size(), 2u) << "a refused one is not left behind";
  EXPECT_EQ(marks_of(graph), marks_of(chain()));
}

TEST(SuperKernelMarks, ComeBackFromText) {
  const std::string text = to_text(chain());
  EXPECT_NE(text.find("  super_kernel sp1 \"width=4:profile=1\"\n  super_kernel \"other one\"\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("%d = neg(%c) : f32[4, 8] in \"other one\"\n"), std::string::npos) << text;
  const Graph back = parse_graph(text);
  EXPECT_EQ(back.super_kernels(), chain().super_kernels());
  EXPECT_EQ(marks_of(back), marks_of(chain()));
  EXPECT_EQ(to_text(back), text);
  EXPECT_EQ(error_text([&] { parse_graph("graph g {\n  input %x : f32[4]\n  %y = neg(%x) : f32[4] in sp2\n}"); }),
            "graph text, line 3: expected a super-kernel of the lines before, found 'sp2'");
}

TEST(SuperKernelMarks, StandThroughEdits) {
  const Graph graph = chain();
  GraphEditor editor(graph);
  const NodeId c = editor.producer(graph.find("c"));
  const ValueId made = editor.insert_after(c, OpKind::neg, {graph.find("c")}, {}, "", {"behind"})[0];
  editor.replace_uses(graph.find("c"), made, editor.producer(made));
  EXPECT_EQ(marks_of(editor.finish()), "a:sp1 b:outside c:sp1 behind:sp1 d:other one e:-");
  EXPECT_EQ(to_text(remove_dead_code(graph)), to_text(graph));
  EXPECT_EQ(to_text(with_channels_last(graph)), to_text(graph));
}

TEST(SuperKernelMarks, AFocusSeesOneSuperKernel) {
  const Graph graph = chain();
  GraphEditor editor(graph);
  const NodeId c = editor.producer(graph.find("c"));
  const GraphEditor::Focus focus(editor, c);
  EXPECT_EQ(editor.producer(graph.find("b")), no_node);
  EXPECT_EQ(editor.producer(graph.find("c")), c);
  EXPECT_TRUE(editor.is_output(graph.find("c"))) << "d reads it, and is elsewhere";
  EXPECT_TRUE(editor.uses(graph.find("c")).empty());
  EXPECT_EQ(editor.uses(graph.find("b")).size(), 1u);
}

/// Where every node stands in a place of its own of a graph with two equal halves, one of them marked as `mark` says.
std::string halves(const std::string& mark) {
  return "graph g {\n  super_kernel sp1\n  input %x : f32[4, 8]\n  constant %c : f32[8]\n  constant %d : f32[8]\n  %a "
         "= mul(%x, %c) : f32[4, 8]\n  %b = "
         "mul(%a, %d) : f32[4, 8]" +
         mark + "\n  %e = mul(%x, %c) : f32[4, 8]" + mark + "\n  output b = %b\n  output e = %e\n}\n";
}

TEST(SuperKernelMarks, EqualNodesAreMergedInOneSuperKernel) {
  EXPECT_EQ(merge_common_subexpressions(parse_graph(halves(""))).nodes().size(), 2u);
  EXPECT_EQ(merge_common_subexpressions(parse_graph(halves(" in sp1"))).nodes().size(), 3u);
}

TEST(SuperKernelMarks, RulesDoNotCrossTheirBorder) {
  // silu and mul become silu_and_mul only together.
  const auto graph = [](const std::string& first, const std::string& second) {
    return parse_graph(
        "graph g {\n  super_kernel sp1\n  super_kernel sp2\n  input %x : f32[4, 16]\n  %g, %u = split(%x) {axis = -1, "
        "parts = 2} : f32[4, 8], f32[4, 8]" +
        first + "\n  %s = silu(%g) : f32[4, 8]" + first + "\n  %y = mul(%s, %u) : f32[4, 8]" + second +
        "\n  output y = %y\n}\n");
  };
  const std::vector<std::string> marks{"", " in sp1", " in sp2", " outside"};
  for (const std::string& first : marks)
    for (const std::string& second : marks) {
      const Graph before = graph(first, second);
      const Graph after = rewrite(before, rewrite_rules()).graph;
      verify(after);
      if (first == second) {
        ASSERT_EQ(after.nodes().size(), 1u) << first;
        EXPECT_EQ(after.nodes()[0].super_kernel, before.nodes()[0].super_kernel);
      } else {
        EXPECT_EQ(to_text(after), to_text(before));
      }
    }
}

TEST(SuperKernelMarks, AlgebraDoesNotCrossTheirBorder) {
  const auto nodes_of = [](const std::string& first, const std::string& second) {
    const Graph before = parse_graph(
        "graph g {\n  super_kernel sp1\n  input %x : i32[4, 8]\n  %a = neg(%x) : i32[4, 8]" + first +
        "\n  %b = neg(%a) : i32[4, 8]" + second + "\n  %y = abs(%b) : i32[4, 8]" + second + "\n  output y = %y\n}\n");
    const Graph after = rewrite(before, rewrite_rules()).graph;
    EXPECT_EQ(Evaluation(after, {}).outputs(), Evaluation(before, {}).outputs());
    return after.nodes().size();
  };
  EXPECT_EQ(nodes_of("", ""), 1u);
  EXPECT_EQ(nodes_of(" in sp1", " in sp1"), 1u);
  EXPECT_EQ(nodes_of(" in sp1", ""), 3u);
  EXPECT_EQ(nodes_of("", " in sp1"), 3u);
}

TEST(SuperKernelOptions, ParseAndComeBack) {
  EXPECT_EQ(SuperKernelOptions::parse(""), SuperKernelOptions());
  EXPECT_EQ(to_string(SuperKernelOptions()), "");
  const SuperKernelOptions options = SuperKernelOptions::parse(
      "width=132:strict-scope-check=abort:stream-fusion=0:early-start=0:prefetch=0:debug-sync-all=1:"
      "profile=1");
  EXPECT_EQ(options.width, 132);
  EXPECT_EQ(options.strict_scope_check, StrictScopeCheck::abort);
  EXPECT_EQ(to_string(options),
            "stream-fusion=0:strict-scope-check=abort:prefetch=0:early-start=0:width=132:debug-sync-"
            "all=1:profile=1");
  EXPECT_EQ(SuperKernelOptions::parse(to_string(options)), options);
}

TEST(SuperKernelOptions, WrongOnesAreRefusedByName) {
  const auto error = [](std::string_view text) { return error_text([&] { SuperKernelOptions::parse(text); }); };
  EXPECT_EQ(error("width"), "super-kernel options: expected name=value:name=value, found \"width\"");
  EXPECT_EQ(error("width=1::"), "super-kernel options: expected name=value:name=value, found \"\"");
  EXPECT_EQ(error("width=1:width=1"), "super-kernel options: expected width once, found it twice");
  EXPECT_EQ(error("width=-1"), "super-kernel option width: expected 0 to 1048576, found -1");
  EXPECT_EQ(error("width=1048577"), "super-kernel option width: expected 0 to 1048576, found 1048577");
  EXPECT_EQ(error("width=1x"), "super-kernel option width: expected 0 to 1048576, found \"1x\"");
  EXPECT_EQ(error("profile=2"), "super-kernel option profile: expected 0 or 1, found \"2\"");
  EXPECT_EQ(error("strict-scope-check=warn"),
            "super-kernel option strict-scope-check: expected bypass or abort, found \"warn\"");
  EXPECT_NE(error("Width=1").find("found \"Width\""), std::string::npos);
}

}  // namespace
}  // namespace cermet
