#include <gtest/gtest.h>

#include "graph/common_subexpressions.hpp"
#include "graph/dead_code.hpp"
#include "graph/fold_constants.hpp"
#include "graph/pass_runner.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

/// Runs a pass on golden/NAME.before.graph and expects golden/NAME.after.graph.
void expect_pass(const std::string& name, Graph (*pass)(const Graph&)) {
  const Graph before = parse_graph(read_text(CERMET_SOURCE_DIR "/tests/graph/golden/" + name + ".before.graph"));
  const Graph after = pass(before);
  verify(after);
  expect_golden("graph/golden/" + name + ".after.graph", to_text(after));
  EXPECT_EQ(to_text(pass(after)), to_text(after)) << "a second time changes nothing";
}

TEST(Passes, DeadCode) { expect_pass("dead_code", remove_dead_code); }
TEST(Passes, CommonSubexpressions) { expect_pass("common_subexpressions", merge_common_subexpressions); }
TEST(Passes, FoldConstants) {
  expect_pass("fold_constants", [](const Graph& graph) { return fold_constants(graph).graph; });
}

TEST(Passes, FoldConstantsReportsWhatIsLeft) {
  const FoldedConstants folded =
      fold_constants(parse_graph(read_text(CERMET_SOURCE_DIR "/tests/graph/golden/fold_constants.before.graph")));
  EXPECT_EQ(folded.nodes, 12u);
  std::vector<std::string> left;
  for (const std::string_view name : {"less", "turned"}) left.push_back(fmt::format("'{}' would take 2.0 GiB", name));
  for (const std::string_view name : {"kept_huge", "raised", "negated", "huge"})
    left.push_back(fmt::format("'{}' would take 4.0 GiB", name));
  EXPECT_EQ(folded.left, left);
}

struct Trace {
  std::string text;
};

const Pass<Trace> passes[] = {
    {"first", "", false,
     [](Trace& t) {
       t.text += "1";
       return std::string("one");
     }},
    {"second", "", true,
     [](Trace& t) {
       t.text += "2";
       return std::string();
     }},
    {"third", "", false,
     [](Trace& t) {
       t.text += "3";
       return std::string("three");
     }},
};

TEST(PassRunner, RunsVerifiesDumpsAndReports) {
  Trace trace;
  PassOptions options;
  options.verify_after = [&](std::string_view step) { trace.text += fmt::format("v({})", step); };
  options.dump = [&](std::string_view step) { trace.text += fmt::format("d({})", step); };
  options.dump_after = "third";
  const auto reports = run_passes<Trace>(passes, trace, options);
  EXPECT_EQ(trace.text, "1v(first)2v(second)3v(third)d(third)");
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0].name + reports[0].note, "firstone");
  EXPECT_GE(reports[2].seconds, 0);
}

TEST(PassRunner, SkipsOptionalStepsOnly) {
  Trace trace;
  EXPECT_EQ(run_passes<Trace>(passes, trace, {{"second"}, "", {}, {}}).size(), 2u);
  EXPECT_EQ(trace.text, "13");
  EXPECT_EQ(error_text([&] {
              run_passes<Trace>(passes, trace, {{"third"}, "", {}, {}});
            }),
            "step 'third' to skip: expected an optional step, found one that the result needs");
  EXPECT_EQ(error_text([&] {
              run_passes<Trace>(passes, trace, {{"fourth"}, "", {}, {}});
            }),
            "step 'fourth' to skip: expected the name of a step, found none of that name");
  EXPECT_EQ(error_text([&] {
              run_passes<Trace>(passes, trace, {{}, "fourth", {}, {}});
            }),
            "step 'fourth' to dump after: expected the name of a step, found none of that name");
  EXPECT_EQ(trace.text, "13") << "wrong options run nothing";
}

}  // namespace
}  // namespace cermet
