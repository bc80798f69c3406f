// References against results computed by hand, so that an operator's meaning does not rest on its own code.
#include <gtest/gtest.h>

#include <cmath>

#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"
#include "op/schema/type_text.hpp"

namespace cermet {
namespace {

using Values = std::vector<double>;

/// Every result of a call's reference, one after another.
Values results_of(std::string_view text, const std::vector<Values>& operands) {
  const OperatorCall call = parse_call(text);
  Case test_case{"", {}, call.attributes};
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    test_case.inputs.push_back(call.inputs[i] ? std::optional(CaseOperand{*call.inputs[i], values(operands.at(i))})
                                              : std::nullopt);
  const Expected expected = run_reference(make_case_data(*find_operator(call.name), test_case));
  Values all;
  for (const OwnedTensor& output : expected.outputs)
    for (std::int64_t i = 0; i < output.view.elements(); ++i) all.push_back(load(output.view, i));
  return all;
}

void expect_near(const Values& found, const Values& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << "element " << i;
}

TEST(KnownValues, Embedding) {
  EXPECT_EQ(results_of("embedding(i32[2], f32[3, 2])", {{2, 0}, {1, 2, 3, 4, 5, 6}}), (Values{5, 6, 1, 2}));
}

TEST(KnownValues, Gather) {
  EXPECT_EQ(results_of("gather(f32[2, 3], i32[2]) {axis = 1}", {{1, 2, 3, 4, 5, 6}, {2, -3}}), (Values{3, 1, 6, 4}));
  EXPECT_EQ(results_of("gather(f32[2, 3], i64[2, 1])", {{1, 2, 3, 4, 5, 6}, {1, -2}}), (Values{4, 5, 6, 1, 2, 3}));
}

TEST(KnownValues, Transpose) {
  EXPECT_EQ(results_of("transpose(f32[2, 3])", {{1, 2, 3, 4, 5, 6}}), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(results_of("transpose(f32[2, 1, 3]) {permutation = [2, 0, 1]}", {{1, 2, 3, 4, 5, 6}}),
            (Values{1, 4, 2, 5, 3, 6}));
}

TEST(KnownValues, Slice) {
  EXPECT_EQ(results_of("slice(f32[6]) {starts = [1], ends = [6], steps = [2]}", {{0, 1, 2, 3, 4, 5}}),
            (Values{1, 3, 5}));
  EXPECT_EQ(results_of("slice(f32[6]) {starts = [-2], ends = [-7], steps = [-2]}", {{0, 1, 2, 3, 4, 5}}),
            (Values{4, 2, 0}));
  EXPECT_EQ(results_of("slice(f32[2, 3]) {starts = [1], ends = [99], axes = [-1]}", {{1, 2, 3, 4, 5, 6}}),
            (Values{2, 3, 5, 6}));
}

TEST(KnownValues, ConcatAndSplit) {
  EXPECT_EQ(results_of("concat(f32[2, 1], f32[2, 2]) {axis = 1}", {{1, 2}, {3, 4, 5, 6}}), (Values{1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(results_of("split(f32[2, 3]) {axis = 1, sizes = [1, -1]}", {{1, 2, 3, 4, 5, 6}}),
            (Values{1, 4, 2, 3, 5, 6}));
}

TEST(KnownValues, ExpandAndWhere) {
  EXPECT_EQ(results_of("expand(f32[2, 1]) {shape = [2, 3]}", {{1, 2}}), (Values{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(results_of("where(bool[2, 1], f32[3], f32[])", {{1, 0}, {1, 2, 3}, {9}}), (Values{1, 2, 3, 9, 9, 9}));
}

TEST(KnownValues, Pad) {
  EXPECT_EQ(results_of("pad(f32[3]) {pads = [2, 1], mode = \"reflect\"}", {{1, 2, 3}}), (Values{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(results_of("pad(f32[3]) {pads = [2, 1], mode = \"edge\"}", {{1, 2, 3}}), (Values{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(results_of("pad(f32[1, 2]) {pads = [1, 0, 0, 1], value = 7.0}", {{1, 2}}), (Values{7, 7, 7, 1, 2, 7}));
}

TEST(KnownValues, Scatter) {
  EXPECT_EQ(results_of("scatter(f32[2, 3], i32[1, 3], f32[1, 3])", {{1, 2, 3, 4, 5, 6}, {1, 0, -1}, {7, 8, 9}}),
            (Values{1, 8, 3, 7, 5, 9}));
  EXPECT_EQ(results_of("scatter(f32[4], i32[3], f32[3]) {reduction = \"sum\"}", {{1, 1, 1, 1}, {2, 2, 0}, {5, 6, 7}}),
            (Values{8, 1, 12, 1}));
}

TEST(KnownValues, Cast) {
  EXPECT_EQ(results_of("cast(f32[6]) {out_dtype = \"i8\"}", {{1.9, -1.9, 300, -300, 0.5, NAN}}),
            (Values{1, -1, 127, -128, 0, 0}));
  EXPECT_EQ(results_of("cast(f32[4]) {out_dtype = \"i8\", rounding = \"nearest\"}", {{0.5, 1.5, 2.5, -2.6}}),
            (Values{0, 2, 2, -3}));
  EXPECT_EQ(results_of("cast(f32[3]) {out_dtype = \"bool\"}", {{0, -0.0, 0.25}}), (Values{0, 0, 1}));
  EXPECT_EQ(results_of("cast(f32[4]) {out_dtype = \"f8_e4m3\"}", {{448, 1000, 17, -0.3}}),
            (Values{448, 448, 16, -0.3125}));
}

TEST(KnownValues, Softmax) {
  expect_near(results_of("softmax(f32[1, 3])", {{0, 0, -INFINITY}}), {0.5, 0.5, 0});
  expect_near(results_of("softmax(f32[2])", {{1000, 1000}}), {0.5, 0.5});
  expect_near(results_of("softmax(f32[1, 4]) {log = true}", {{3, 3, 3, 3}}), Values(4, -std::log(4.0)));
}

TEST(KnownValues, Reductions) {
  const std::vector<Values> x{{1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(results_of("reduce_sum(f32[2, 3]) {axes = [1]}", x), (Values{6, 15}));
  EXPECT_EQ(results_of("reduce_mean(f32[2, 3]) {axes = [0]}", x), (Values{2.5, 3.5, 4.5}));
  EXPECT_EQ(results_of("reduce_prod(f32[2, 3])", x), (Values{720}));
  EXPECT_EQ(results_of("reduce_max(f32[2, 3]) {axes = [-1], keepdims = true}", x), (Values{3, 6}));
  EXPECT_EQ(results_of("reduce_min(i32[2, 3]) {axes = [0]}", x), (Values{1, 2, 3}));
  EXPECT_EQ(results_of("reduce_mean(i32[4, 2]) {axes = [1]}", {{1, 2, 3, 4, -1, -2, -3, -4}}), (Values{2, 4, -2, -4}));
  EXPECT_EQ(results_of("reduce_sum(i32[2])", {{2e9, 2e9}}), (Values{2147483647}));
}

TEST(KnownValues, Cumsum) {
  EXPECT_EQ(results_of("cumsum(f32[4])", {{1, 2, 3, 4}}), (Values{1, 3, 6, 10}));
  EXPECT_EQ(results_of("cumsum(f32[4]) {exclusive = true}", {{1, 2, 3, 4}}), (Values{0, 1, 3, 6}));
  EXPECT_EQ(results_of("cumsum(f32[4]) {reverse = true}", {{1, 2, 3, 4}}), (Values{10, 9, 7, 4}));
  EXPECT_EQ(results_of("cumsum(i32[2, 2]) {axis = 0, exclusive = true, reverse = true}", {{1, 2, 3, 4}}),
            (Values{3, 4, 0, 0}));
}

TEST(KnownValues, TopK) {
  EXPECT_EQ(results_of("topk(f32[5]) {k = 3}", {{1, 7, 3, 7, 5}}), (Values{7, 7, 5, 1, 3, 4}));
  EXPECT_EQ(results_of("topk(f32[5]) {k = 2, largest = false}", {{1, 7, 1, 7, 5}}), (Values{1, 1, 0, 2}));
}

TEST(KnownValues, ReducingCollectives) {
  const std::vector<Values> x{{1, 2, 3, 4, 10, 20, 30, 40}};  // two ranks of four
  EXPECT_EQ(results_of("all_reduce(f32[2, 4])", x), (Values{11, 22, 33, 44, 11, 22, 33, 44}));
  EXPECT_EQ(results_of("all_reduce(f32[2, 4]) {reduction = \"avg\"}", x),
            (Values{5.5, 11, 16.5, 22, 5.5, 11, 16.5, 22}));
  EXPECT_EQ(results_of("all_reduce(i8[2, 1]) {reduction = \"sum\"}", {{100, 100}}), (Values{127, 127}));
  EXPECT_EQ(results_of("all_reduce(i32[2, 2]) {reduction = \"avg\"}", {{1, 3, 2, 4}}), (Values{2, 4, 2, 4}));
  EXPECT_EQ(results_of("reduce_scatter(f32[2, 4])", x), (Values{11, 22, 33, 44}));
  EXPECT_EQ(results_of("reduce_to(f32[2, 4]) {root = 1, reduction = \"max\"}", x),
            (Values{0, 0, 0, 0, 10, 20, 30, 40}));
}

TEST(KnownValues, MovingCollectives) {
  const std::vector<Values> x{{1, 2, 3, 4, 10, 20, 30, 40}};
  EXPECT_EQ(results_of("all_gather(f32[2, 2, 2])", x),
            (Values{1, 2, 3, 4, 10, 20, 30, 40, 1, 2, 3, 4, 10, 20, 30, 40}));
  EXPECT_EQ(results_of("gather_to(f32[2, 4]) {root = 0}", x),
            (Values{1, 2, 3, 4, 10, 20, 30, 40, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(results_of("scatter_from(f32[2, 4]) {root = 1}", x), (Values{10, 20, 30, 40}));
  EXPECT_EQ(results_of("broadcast_from(f32[2, 4]) {root = 1}", x), (Values{10, 20, 30, 40, 10, 20, 30, 40}));
  EXPECT_EQ(results_of("all_to_all(f32[2, 4])", x), (Values{1, 2, 10, 20, 3, 4, 30, 40}));
  // Rank 0 keeps one row and sends two; rank 1 sends one and keeps none.
  EXPECT_EQ(results_of("all_to_all(f32[2, 4], i32[2, 2])", {x[0], {1, 2, 1, 0}}), (Values{1, 10, 0, 0, 2, 3, 0, 0}));
}

}  // namespace
}  // namespace cermet
