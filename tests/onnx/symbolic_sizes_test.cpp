// Sizes that flow from Shape into Slice, Expand, Range and their like: one compilation for a range, with the values
// that a compilation for each size gives.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "tests/onnx/builder.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::onnx::test {
namespace {

using P = ::onnx::TensorProto;
using Lengths = std::vector<std::int64_t>;

/// x: f32 [B, S, 3], counted from 0.
std::vector<OwnedTensor> sequence(std::int64_t b, std::int64_t s) {
  std::vector<float> values(static_cast<std::size_t>(b * s * 3));
  std::iota(values.begin(), values.end(), 0.0f);
  std::vector<OwnedTensor> operands;
  operands.push_back(floats({b, s, 3}, values));
  return operands;
}

/// A graph of x whose sizes are there as values: "b", "s" (i64 [1]), "s0" (i64 []), and numbers "n0", "n1", "n-1" ..
/// (i64 [1]).
class Sized {
 public:
  Sized() {
    input(graph, "x", P::FLOAT, {"batch", "seq", 3});
    node(graph, "Shape", {"x"}, {"shape"});
    for (const std::int64_t n : {-129, -5, -3, -2, -1, 0, 1, 2, 3, 4, 5, 64, 128, 200})
      *graph.add_initializer() = ints("n" + std::to_string(n), {n});
    *graph.add_initializer() = ints("first", {std::numeric_limits<std::int64_t>::min()});
    *graph.add_initializer() = ints("last", {std::numeric_limits<std::int64_t>::max()});
    *graph.add_initializer() = tensor<std::int64_t>("zero", {}, {0});
    *graph.add_initializer() = tensor<std::int64_t>("one", {}, {1});
    node(graph, "Gather", {"shape", "n0"}, {"b"});
    node(graph, "Gather", {"shape", "n1"}, {"s"});
    node(graph, "Gather", {"shape", "one"}, {"s0"});
  }
  Sized& add(const std::string& op, const Names& inputs, const Names& outputs,
             const std::vector<AttributeProto>& attributes = {}) {
    node(graph, op, inputs, outputs, attributes).set_name("/" + op + "_of_" + outputs[0]);
    return *this;
  }
  Sized& result(const std::string& name) {
    output(graph, name);
    return *this;
  }
  ::onnx::GraphProto graph;
};

/// Runs at each length, compared with a compilation for that size alone; the number of compilations for the range must
/// be `compilations`.
void expect_same(const Sized& made, const Lengths& lengths = {1, 2, 7, 64, 127, 128}, std::int64_t compilations = 1,
                 DimRange range = {1, 128}) {
  Runner symbolic(model_of(made.graph), {{"batch", {1, 4}}, {"seq", range}});
  for (const std::int64_t s : lengths) {
    for (const std::int64_t b : {3, 1}) {
      Runner fixed(model_of(made.graph));
      fixed.run(sequence(b, s));
      symbolic.run(sequence(b, s));
      ASSERT_TRUE(symbolic.compiled().is_symbolic()) << symbolic.compiled().why_not_symbolic();
      for (std::size_t o = 0; o < symbolic.compiled().output_names().size(); ++o) {
        const TensorView y = symbolic.output(o), expected = fixed.output(o);
        ASSERT_EQ(y.type(), expected.type()) << "result " << o << " at " << b << " x " << s;
        const auto bytes = static_cast<std::size_t>(dense_bytes(y.dtype, y.shape));
        EXPECT_EQ(std::string(y.as<const char>(), bytes), std::string(expected.as<const char>(), bytes))
            << "result " << o << " at " << b << " x " << s;
      }
    }
  }
  EXPECT_EQ(symbolic.compiled().compiled_parts(), compilations);
}

/// Why a graph is compiled for each size.
std::string reason(const Sized& made, DimRange range = {1, 128}) {
  Runner runner(model_of(made.graph), {{"batch", {1, 4}}, {"seq", range}});
  runner.run(sequence(2, 5));
  EXPECT_FALSE(runner.compiled().is_symbolic());
  return std::string(runner.compiled().why_not_symbolic());
}

AttributeProto axis(std::int64_t a) { return attribute("axis", a); }

/// One Slice of x along its sequence, added to nothing else.
Sized sliced(const std::string& start, const std::string& end, const std::string& step = "n1") {
  Sized g;
  g.add("Slice", {"x", start, end, "n1", step}, {"y"}).add("Neg", {"y"}, {"negated"}).result("negated");
  return g;
}

TEST(SymbolicSizes, SlicesOfASymbolicAxis) {
  for (const auto& [start, end] : std::vector<std::pair<std::string, std::string>>{{"n0", "n5"},
                                                                                   {"n0", "n128"},
                                                                                   {"n0", "n200"},
                                                                                   {"n2", "last"},
                                                                                   {"n-5", "last"},
                                                                                   {"n-1", "last"},
                                                                                   {"n0", "n-1"},
                                                                                   {"n-3", "n-1"},
                                                                                   {"n1", "n-2"},
                                                                                   {"n-129", "last"},
                                                                                   {"first", "last"},
                                                                                   {"n64", "n128"},
                                                                                   {"n200", "last"},
                                                                                   {"n5", "n2"},
                                                                                   {"n0", "s"},
                                                                                   {"n1", "s"},
                                                                                   {"n0", "n0"}})
    expect_same(sliced(start, end));
}

TEST(SymbolicSizes, SlicesInSteps) {
  for (const auto& [start, end, step] : std::vector<std::array<std::string, 3>>{{"n0", "last", "n2"},
                                                                                {"n1", "last", "n3"},
                                                                                {"last", "first", "n-1"},
                                                                                {"n-1", "first", "n-1"},
                                                                                {"n-1", "first", "n-2"},
                                                                                {"n5", "n1", "n-2"},
                                                                                {"n0", "s", "n64"},
                                                                                {"n-2", "n0", "n-1"},
                                                                                {"n0", "last", "n200"}})
    expect_same(sliced(start, end, step));
}

TEST(SymbolicSizes, SlicesOfAConstantToALength) {
  Sized g;
  std::vector<float> table(130 * 2);
  std::iota(table.begin(), table.end(), 0.0f);
  *g.graph.add_initializer() = tensor<float>("table", {130, 2}, table);
  g.add("Add", {"s", "n1"}, {"more"}).add("Sub", {"s", "n1"}, {"less"}).add("Sub", {"n0", "s"}, {"from_end"});
  g.add("Slice", {"table", "n0", "s", "n0"}, {"y_a"}).result("y_a");
  g.add("Slice", {"table", "n2", "more", "n0"}, {"y_b"}).result("y_b");
  g.add("Slice", {"table", "less", "more", "n0"}, {"y_c"}).result("y_c");
  g.add("Slice", {"table", "from_end", "last", "n0"}, {"y_d"}).result("y_d");
  g.add("Slice", {"table", "less", "first", "n0", "n-1"}, {"y_e"}).result("y_e");
  expect_same(g);
}

/// The whole of a mask as exporters build one: ranges, comparisons, a filled tensor, an expansion to a size that was
/// put together.
TEST(SymbolicSizes, CausalMasks) {
  Sized g;
  *g.graph.add_initializer() = tensor<float>("lowest", {}, {-1e9f});
  *g.graph.add_initializer() = tensor<float>("nothing", {}, {0});
  g.add("Range", {"zero", "s0", "one"}, {"positions"});
  g.add("Unsqueeze", {"positions", "n1"}, {"rows"}).add("Unsqueeze", {"positions", "n0"}, {"columns"});
  g.add("LessOrEqual", {"columns", "rows"}, {"seen"});
  g.add("Concat", {"b", "n1", "s", "s"}, {"whole"}, {axis(0)});
  g.add("Expand", {"seen", "whole"}, {"wide"});
  g.add("Where", {"wide", "nothing", "lowest"}, {"mask"}).result("mask");
  g.add("Concat", {"s", "s"}, {"square"}, {axis(0)})
      .add("ConstantOfShape", {"square"}, {"ones"}, {attribute("value", tensor<float>("", {1}, {1}))});
  g.add("Trilu", {"ones", "one"}, {"upper"}).result("upper");
  g.add("ReduceSum", {"x", "n2"}, {"sums"}, {attribute("keepdims", std::int64_t{0})});
  g.add("Unsqueeze", {"sums", "n1"}, {"beside"}).add("Add", {"ones", "beside"}, {"together"}).result("together");
  expect_same(g);
}

TEST(SymbolicSizes, RangesOfSizes) {
  Sized g;
  *g.graph.add_initializer() = tensor<std::int64_t>("two", {}, {2});
  *g.graph.add_initializer() = tensor<std::int64_t>("minus", {}, {-1});
  g.add("Range", {"zero", "s0", "two"}, {"y_a"}).result("y_a");
  g.add("Range", {"s0", "zero", "minus"}, {"y_b"}).result("y_b");
  g.add("Range", {"two", "s0", "one"}, {"y_c"}).result("y_c");  // nothing at 1 and 2
  g.add("Sub", {"s0", "one"}, {"before"}).add("Range", {"before", "s0", "one"}, {"y_d"}).result("y_d");
  g.add("Cast", {"s0"}, {"real"}, {attribute("to", std::int64_t{P::FLOAT})});
  *g.graph.add_initializer() = tensor<float>("real_zero", {}, {0});
  *g.graph.add_initializer() = tensor<float>("real_one", {}, {1});
  g.add("Range", {"real_zero", "real", "real_one"}, {"y_e"}).result("y_e");
  expect_same(g);
}

TEST(SymbolicSizes, ExpandWithMinusOneWrittenByWhere) {
  Sized g;
  g.add("Concat", {"b", "s", "n-1"}, {"wanted"}, {axis(0)}).add("Shape", {"wanted"}, {"rank"});
  g.add("ConstantOfShape", {"rank"}, {"ones"}, {attribute("value", tensor<std::int64_t>("", {1}, {1}))});
  g.add("Mul", {"ones", "n-1"}, {"minus"})
      .add("Equal", {"wanted", "minus"}, {"open"})
      .add("Where", {"open", "ones", "wanted"}, {"to"});
  *g.graph.add_initializer() = tensor<float>("row", {1, 1, 3}, {1, 2, 3});
  g.add("Expand", {"row", "to"}, {"y"}).result("y");
  expect_same(g);
}

TEST(SymbolicSizes, ReshapesOfSeveralSizes) {
  Sized g;
  g.add("Mul", {"b", "s"}, {"rows"})
      .add("Concat", {"rows", "n3"}, {"flat"}, {axis(0)})
      .add("Reshape", {"x", "flat"}, {"a"});
  g.add("Add", {"a", "a"}, {"twice"})
      .add("Concat", {"s", "b", "n3"}, {"apart"}, {axis(0)})
      .add("Reshape", {"twice", "apart"}, {"y"})
      .result("y");
  g.add("Concat", {"b", "s", "n-1"}, {"back"}, {axis(0)}).add("Reshape", {"twice", "back"}, {"z"}).result("z");
  expect_same(g);
}

TEST(SymbolicSizes, TilePadSplitAndOneHot) {
  Sized g;
  *g.graph.add_initializer() = tensor<float>("row", {1, 2}, {1, 2});
  *g.graph.add_initializer() = tensor<float>("values", {2}, {0, 1});
  g.add("Concat", {"s", "n1"}, {"repeats"}, {axis(0)}).add("Tile", {"row", "repeats"}, {"tiled"}).result("tiled");
  g.add("Concat", {"n2", "n1"}, {"twice"}, {axis(0)}).add("Tile", {"tiled", "twice"}, {"again"}).result("again");
  g.add("Split", {"again"}, {"half", "other"}, {axis(0)}).result("half").result("other");
  g.add("OneHot", {"n0", "s", "values"}, {"hot"}).result("hot");
  expect_same(g);
}

TEST(SymbolicSizes, SizesAreResults) {
  Sized g;
  g.add("Mul", {"b", "s"}, {"count"}).result("count").result("shape");
  g.add("Cast", {"count"}, {"real"}, {attribute("to", std::int64_t{P::FLOAT})})
      .add("Div", {"x", "real"}, {"y"})
      .result("y")
      .result("real");
  expect_same(g);
}

TEST(SymbolicSizes, HalvesAndLimitsOfSizes) {
  Sized g;
  g.add("Div", {"s", "n2"}, {"half"}).add("Min", {"s", "n5"}, {"few"}).add("Mod", {"s", "n3"}, {"rest"}).result("rest");
  g.add("Slice", {"x", "n0", "half", "n1"}, {"y_a"}).result("y_a");
  g.add("Slice", {"x", "n0", "few", "n1"}, {"y_c"}).result("y_c");
  expect_same(g);
}

TEST(SymbolicSizes, RangesFromNothing) {
  Sized g;
  *g.graph.add_initializer() = tensor<float>("row", {1, 2}, {1, 2});
  g.add("Range", {"zero", "s0", "one"}, {"y_a"})
      .result("y_a")
      .add("Concat", {"s", "n2"}, {"to"}, {axis(0)})
      .add("Expand", {"row", "to"}, {"y"})
      .result("y");
  expect_same(g, {0, 1, 2, 9}, 1, {0, 9});
}

/// A condition on sizes cuts the range where it turns: at most three compilations.
TEST(SymbolicSizes, RangesAreCutWhereSizesDiffer) {
  Sized squeezed;  // a size of 1 goes, another stays
  squeezed.add("Slice", {"x", "n0", "n2", "n1"}, {"some"})
      .add("Transpose", {"x"}, {"t"}, {attribute("perm", std::vector<std::int64_t>{1, 0, 2})});
  squeezed.add("Slice", {"t", "n0", "n1", "n1"}, {"u"})
      .add("Squeeze", {"u", "n1"}, {"v"})
      .add("Squeeze", {"some"}, {"y"})
      .result("y")
      .result("v");
  Runner runner(model_of(squeezed.graph), {{"seq", {1, 128}}});
  for (const std::int64_t s : {5, 1, 128, 2, 1}) runner.run(sequence(2, s));
  EXPECT_TRUE(runner.compiled().is_symbolic()) << runner.compiled().why_not_symbolic();
  EXPECT_EQ(runner.compiled().compiled_parts(), 2);

  Sized branch;
  ::onnx::GraphProto longer, shorter;
  node(longer, "Neg", {"x"}, {"negated"});
  output(longer, "negated");
  node(shorter, "Add", {"x", "x"}, {"doubled"});
  output(shorter, "doubled");
  branch.add("Greater", {"s0", "limit"}, {"is_long"});
  *branch.graph.add_initializer() = tensor<std::int64_t>("limit", {}, {64});
  branch.add("If", {"is_long"}, {"y"}, {attribute("then_branch", longer), attribute("else_branch", shorter)})
      .result("y");
  expect_same(branch, {1, 63, 64, 65, 128}, 3);

  Sized shifted;  // an end of S - 5 counts from the end below 5
  shifted.add("Sub", {"s", "n5"}, {"from"})
      .add("Slice", {"x", "n0", "from", "n1"}, {"some"})
      .add("Neg", {"some"}, {"y"})
      .result("y");
  expect_same(shifted, {1, 4, 5, 6, 128}, 3);

  Sized broadcast;  // 5 positions fit 1 and 5
  *broadcast.graph.add_initializer() = tensor<float>("five", {1, 5, 3}, std::vector<float>(15, 2));
  broadcast.add("Add", {"x", "five"}, {"y"}).result("y");
  expect_same(broadcast, {1, 5}, 2);
}

TEST(SymbolicSizes, TheReasonNamesTheNode) {
  Sized falls;
  falls.add("Sub", {"n200", "s"}, {"rest"}).add("ConstantOfShape", {"rest"}, {"y"}).result("y");
  EXPECT_EQ(reason(falls),
            "node '/ConstantOfShape_of_y' (ConstantOfShape) makes the size -1*seq+200, which does not grow with every "
            "size it is made of");
  Sized elements;
  elements.add("ReduceMax", {"x"}, {"most"}, {attribute("keepdims", std::int64_t{0})})
      .add("Cast", {"most"}, {"end"}, {attribute("to", std::int64_t{P::INT64})});
  elements.add("Unsqueeze", {"end", "n0"}, {"ends"}).add("Slice", {"x", "n0", "ends", "n1"}, {"y"}).result("y");
  EXPECT_EQ(reason(elements),
            "node '/Slice_of_y' (Slice): operand 2 ('ends') depends on elements, which are known only in a run");
  Sized counted;
  counted.add("TopK", {"x", "n1"}, {"y", "at"}, {axis(1)}).result("y");
  EXPECT_EQ(reason(counted), "node '/TopK_of_y' (TopK) needs the number seq");
  Sized both;
  both.add("Transpose", {"x"}, {"t"}, {attribute("perm", std::vector<std::int64_t>{1, 0, 2})})
      .add("Add", {"x", "t"}, {"y"})
      .result("y");
  Runner runner(model_of(both.graph), {{"batch", {1, 4}}, {"seq", {1, 4}}});
  runner.run(sequence(2, 2));
  EXPECT_EQ(runner.compiled().why_not_symbolic(),
            "node '/Add_of_y' (Add): sizes in the range differ in whether seq is batch");
}

TEST(SymbolicSizes, FailingRunsLeaveTheRangeAlone) {
  Sized g;
  *g.graph.add_initializer() = tensor<float>("five", {1, 5, 3}, std::vector<float>(15, 2));
  g.add("Add", {"x", "five"}, {"y"}).result("y");
  Runner runner(model_of(g.graph), {{"batch", {1, 4}}, {"seq", {1, 128}}});
  EXPECT_NE(error_text([&] { runner.run(sequence(2, 7)); }).find("node '/Add_of_y' (Add)"), std::string::npos);
  EXPECT_TRUE(runner.compiled().is_symbolic());
  runner.run(sequence(2, 5));
  EXPECT_TRUE(runner.compiled().is_symbolic());
}

}  // namespace
}  // namespace cermet::onnx::test
