// What graphs and sessions of the C and the C++ interface refuse, and how they name it.
#include <gtest/gtest.h>

#include "tests/api/refusal.hpp"
#include "tests/api/small_graph.hpp"

namespace cermet::test {
namespace {

TEST(GraphRefusal, NamesWhatDoesNotFit) {
  graph made = small_graph();
  const value x = made.find("x"), w = made.find("w");
  EXPECT_SAYS(made.input("x", dtype::f32, {2}), "value 'x': expected a name of its own, found one that is taken");
  EXPECT_SAYS(made.input("v", dtype::f32, {"T-"}), "T-");
  EXPECT_SAYS(made.apply("lineer", {x, w}), "linear");
  EXPECT_SAYS(made.apply("linear", {x, value(99)}),
              "linear: input 1 (w): expected a value of graph 'small', of which there are 5, found 99");
  EXPECT_SAYS(made.apply("linear", {x, made.literal("three", tensor({1, 3}, Values(3)))}), "linear: operand 1 (w)");
  EXPECT_SAYS(made.apply("relu", {x}, {}, {"x"}), "value 'x': expected a name of its own, found one that is taken");
  EXPECT_SAYS(made.apply("relu", {x}, {{"slope", 1}}), "slope");
  EXPECT_SAYS(made.output("y", x), "output 'y': expected a name of its own");
  EXPECT_SAYS(made.output("z", value()), "output 'z': expected a value of graph 'small'");
  EXPECT_SAYS(made.symbol("T", 4, 2), "symbol 'T'");
  EXPECT_SAYS((void)made.scope(""), "scope: expected a name");
  EXPECT_SAYS(made.compile({{{"T", 9}}}), "maximum of 'T': expected 1 to 8, found 9");
  EXPECT_SAYS(made.compile({{{"S", 9}}}), "maximum of 'S': expected a symbol of the graph");
  EXPECT_SAYS(made.compile({{}, "most"}), "fusion");
  EXPECT_SAYS(made.compile({{}, "full", "loose"}), "rounding: expected strict or fast, found 'loose'");
  EXPECT_SAYS(made.compile({{}, "full", "strict", {"verify"}}), "step 'verify' to skip");
  EXPECT_EQ(graph::parse(made.text()).text(), made.text()) << "what was refused left nothing behind";
  session compiled = made.compile();
  const tensor wide({9, 2}, Values(18)), bad({1, 3}, Values(3)), good({1, 2}, Values(2));
  EXPECT_SAYS(compiled.run({}), "small: expected 1 inputs, found 0");
  EXPECT_SAYS(compiled.run({tensor()}), "input 0 (x): expected a tensor, found none");
  EXPECT_SAYS(compiled.run({wide}), "small: expected T from 1 to 8, found 9");
  EXPECT_SAYS(compiled.run({tensor({0, 2}, Values())}), "small: expected T from 1 to 8, found 0");
  EXPECT_SAYS(compiled.run({bad}), "input 'x': expected f32[T, 2] = [1, 2], as other inputs have it, found [1, 3]");
  EXPECT_SAYS(compiled.run({tensor({1, 2}, dtype::i64)}), "input 0 (x): expected f32");
  EXPECT_SAYS(compiled.run({good}, {bad, tensor()}), "output 0 (y): expected f32[T, 2] with T = 1, found [1, 3]");
  EXPECT_SAYS(compiled.output_shape(0, {}), "expected 1 inputs, found 0");
  EXPECT_SAYS(compiled.run({good}, {}, stream(wide.data())), "stream: expected none on cpu, found one");
  graph open("open");
  open.output("y", open.relu(open.input("x", dtype::f32, {"N"})));
  EXPECT_SAYS(open.compile(), "maxima: expected the largest value of 'N', whose range has no end, found none");
}

TEST(GraphRefusal, RefusesNullPointers) {
  cermet_graph* made = nullptr;
  expect_refused(cermet_graph_create(nullptr, "g", &made), {"handle", "NULL"});
  const handle cpu("cpu", 1);
  expect_refused(cermet_graph_create(cpu.get(), nullptr, &made), {"name", "NULL"});
  expect_refused(cermet_graph_parse(cpu.get(), nullptr, &made), {"text", "NULL"});
  const graph small = small_graph();
  cermet_session* compiled = nullptr;
  cermet_compile_options options = cermet_compile_defaults();
  options.maximum_count = 1;
  expect_refused(cermet_graph_compile(small.get(), &options, &compiled), {"maxima", "NULL"});
  options = cermet_compile_defaults();
  options.struct_size = 1;
  expect_refused(cermet_graph_compile(small.get(), &options, &compiled), {"struct_size"});
  expect_refused(cermet_graph_scope_end(small.get()), {"scope: expected one that was begun, found none"});
  session ready = small.compile();
  DLTensor result{};
  expect_refused(cermet_session_result(ready.get(), 0, &result),
                 {"output 'y': expected a run that succeeded, found none"});
  expect_refused(cermet_session_result(ready.get(), 2, &result), {"expected an index below 2, found 2"});
  expect_refused(cermet_session_run(ready.get(), nullptr, 1, nullptr, 0, nullptr), {"inputs", "NULL"});
  cermet_graph_destroy(nullptr);
  cermet_session_destroy(nullptr);
  EXPECT_EQ(cermet_graph_text(nullptr), nullptr);
  EXPECT_EQ(cermet_graph_find(small.get(), "nothing"), CERMET_NO_VALUE);
}

}  // namespace
}  // namespace cermet::test
