// State that graphs update, through the C and the C++ interface.
#include <gtest/gtest.h>

#include "tests/api/refusal.hpp"
#include "tests/api/small_graph.hpp"
#include "tests/support/heap.hpp"

namespace cermet::test {
namespace {

/// sum += x, and the old sum as a result.
graph running_sum() {
  graph made("running");
  made.symbol("T", 1, 4);
  const value sum = made.input("sum", dtype::f32, {"T", 2}), x = made.input("x", dtype::f32, {"T", 2});
  const value next = made.add(sum, x);
  made.update(sum, next);
  made.output("next", next);
  return made;
}

TEST(GraphUpdate, KeepsStateBetweenRuns) {
  session compiled = running_sum().compile();
  EXPECT_TRUE(compiled.input_is_written(0));
  EXPECT_FALSE(compiled.input_is_written(1));
  EXPECT_EQ(compiled.output_alias(0), 0) << "the value is written in place";
  const tensor sum({1, 2}, Values{1, 2}), x({1, 2}, Values{10, 20});
  const std::vector<tensor> results = compiled(sum, x);
  EXPECT_EQ(results[0].data(), sum.data());
  compiled.run({sum, x});
  EXPECT_EQ(sum.values(), (Values{21, 42}));
  const DLTensor state = sum.dl(), given = x.dl();
  const DLTensor* const inputs[]{&state, &given};
  const std::int64_t before = heap::allocations();
  ASSERT_EQ(cermet_session_run(compiled.get(), inputs, 2, nullptr, 0, nullptr), CERMET_OK);
  EXPECT_EQ(heap::allocations(), before);
  EXPECT_EQ(sum.values(), (Values{31, 62}));
}

TEST(GraphUpdate, TextIsTheSameGraph) {
  const graph made = running_sum();
  EXPECT_NE(made.text().find("  update %sum = %add\n"), std::string::npos);
  const graph copy = graph::parse(made.text());
  EXPECT_EQ(copy.text(), made.text());
  const tensor sum({2, 2}, Values{1, 2, 3, 4}), x({2, 2}, Values{1, 1, 1, 1});
  copy.compile().run({sum, x});
  EXPECT_EQ(sum.values(), (Values{2, 3, 4, 5}));
}

TEST(GraphUpdate, AGraphMayHaveNoResults) {
  graph made("state");
  std::int64_t one = 1, count = 5;
  const value n = made.input("n", dtype::i64, {1});
  made.update(n, made.add(n, made.literal("one", tensor::view(&one, {1}, dtype::i64))));
  session compiled = made.compile();
  const tensor state = tensor::view(&count, {1}, dtype::i64);
  compiled.run({state});
  compiled.run({state});
  EXPECT_EQ(count, 7);
}

TEST(GraphUpdate, RefusesWhatIsNoState) {
  graph made = running_sum();
  const value sum = made.find("sum"), x = made.find("x"), next = made.find("add");
  EXPECT_SAYS(made.update(sum, x), "update of 'sum': expected one of each input, found two");
  EXPECT_SAYS(made.update(next, x), "update of 'add': expected an input of graph 'running', found a node's result");
  EXPECT_SAYS(made.update(value(), x), "update: input: expected a value of graph 'running'");
  EXPECT_SAYS(made.update(x, made.cast(x, {"bf16"})), "update of 'x': expected f32[T, 2], found 'cast': bf16[T, 2]");
  session compiled = made.compile();
  const tensor a({1, 2}, Values{1, 2}), b({1, 2}, Values{1, 2});
  EXPECT_SAYS(compiled.run({a, a}), "input 0 (sum): expected memory of its own, which is updated, found that of 'x'");
  EXPECT_SAYS(compiled.run({a, b}, {b}),
              "output 0 (next): expected the memory of input 'sum', which it shares, or none");
  compiled.run({a, b}, {a});
  EXPECT_EQ(a.values(), (Values{2, 4}));
  expect_refused(cermet_graph_update(nullptr, 0, 0), {"graph", "NULL"});
}

TEST(GraphUpdate, ResultsStayApartFromUpdatedMemory) {
  graph made("apart");
  const value a = made.input("a", dtype::f32, {2}), b = made.input("b", dtype::f32, {2});
  made.output("old", a);
  made.update(a, b);
  session compiled = made.compile();
  EXPECT_EQ(compiled.output_alias(0), -1);
  const tensor x({2}, Values{1, 2}), y({2}, Values{3, 4}), out({2});
  compiled.run({x, y}, {out});
  EXPECT_EQ(out.values(), (Values{1, 2}));
  EXPECT_EQ(x.values(), (Values{3, 4}));
  EXPECT_SAYS(compiled.run({x, y}, {x}),
              "output 0 (old): expected memory of its own, found that of input 'a', which is updated");
}

}  // namespace
}  // namespace cermet::test
