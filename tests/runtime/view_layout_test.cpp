// Splits into columns and reshapes that share their operand's memory.
#include "runtime/view_layout.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "runtime/compile.hpp"

namespace cermet {
namespace {

Problem split(const TensorType& x, const Ints& sizes, std::int64_t axis) {
  return make_problem(definition(OpKind::split), {x}, {{"axis", axis}, {"sizes", sizes}});
}

TEST(ViewLayout, PiecesOfTheLastAxisAreColumns) {
  const auto pieces = view_layouts(split({DType::f32, {Dim::symbol("T"), 12}}, {8, 4}, -1), {});
  ASSERT_TRUE(pieces);
  EXPECT_EQ((*pieces)[0].strides, (std::vector<std::int64_t>{12, 1}));
  EXPECT_EQ((*pieces)[1].offset, 8);
  EXPECT_FALSE(view_layouts(split({DType::f32, {12, 12}}, {8, 4}, 0), {})) << "pieces of another axis are copied";
  EXPECT_FALSE(view_layouts(split({DType::f32, {12}}, {8, 4}, 0), {})) << "a vector's pieces have no rows";
}

TEST(ViewLayout, HeadsOfAColumnPiece) {
  const TensorType piece{DType::bf16, {Dim::symbol("T"), 8}};
  const ValueLayout column{4, {12, 1}};
  const Problem heads = make_problem(definition(OpKind::reshape), {piece}, {{"shape", Ints{0, 2, 4}}});
  const auto layout = view_layouts(heads, column);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->front().offset, 4);
  EXPECT_EQ(layout->front().strides, (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_TRUE(trailing_dense(layout->front(), heads.outputs[0], 2));
  EXPECT_FALSE(trailing_dense(layout->front(), heads.outputs[0], 3));
  const TensorType rows{DType::bf16, {6, 8}};
  EXPECT_FALSE(view_layouts(make_problem(definition(OpKind::reshape), {rows}, {{"shape", Ints{48}}}), column))
      << "rows apart cannot become one";
}

TEST(ViewLayout, HeadsOfColumnsOfABatch) {
  const Dim S = Dim::symbol("S");
  const auto heads = [](const TensorType& piece, const ValueLayout& layout, const Ints& shape) {
    return view_layouts(make_problem(definition(OpKind::reshape), {piece}, {{"shape", shape}}), layout);
  };
  const auto batch = heads({DType::f32, {2, 5, 8}}, {8, {120, 24, 1}}, {2, 5, 2, 4});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->front().strides, (std::vector<std::int64_t>{120, 24, 4, 1}));
  const auto one = heads({DType::f32, {1, S, 8}}, {8, {0, 24, 1}}, {1, 0, 2, 4});
  ASSERT_TRUE(one) << "the stride of a dimension of 1 does not matter";
  EXPECT_EQ(one->front().strides, (std::vector<std::int64_t>{0, 24, 4, 1}));
  const auto joined = heads({DType::f32, {2, 5, 8}}, {0, {120, 24, 1}}, {10, 8});
  ASSERT_TRUE(joined) << "rows of a batch are as far apart as rows of a sequence";
  EXPECT_EQ(joined->front().strides, (std::vector<std::int64_t>{24, 1}));
  EXPECT_FALSE(heads({DType::f32, {2, 5, 8}}, {0, {200, 24, 1}}, {10, 8})) << "sequences are further apart";
  EXPECT_FALSE(heads({DType::f32, {2, 5, 8}}, {0, {120, 24, 1}}, {2, 40})) << "rows apart cannot become one";
  EXPECT_FALSE(heads({DType::f32, {4, 6}}, {0, {24, 1}}, {3, 8})) << "extents that share no factor";
  const auto pieces = view_layouts(split({DType::f32, {1, S, 24}}, {8, 8, 8}, -1), {});
  ASSERT_TRUE(pieces) << "columns of one sequence of any length";
  EXPECT_EQ((*pieces)[2].strides, (std::vector<std::int64_t>{0, 24, 1}));
}

/// Runs a graph on [3, 12] = 0, 1, 2, ... and returns output "y" as doubles.
std::vector<float> run(const char* text, const std::vector<std::string>& skip, std::string& note) {
  ThreadPool pool(1);
  const auto device = make_cpu_device();
  WeightStore weights([](const std::string&, std::int64_t, const TensorView&) {}, pool);
  CompileOptions options;
  options.maximum.set(Symbol("T"), 4);
  options.skip = skip;
  std::vector<CompileStep> report;
  Executable executable = compile(parse_graph(text), *device, weights, pool, options, &report);
  for (const CompileStep& step : report)
    if (step.name == "fold-views") note = step.note;
  std::vector<float> x(36);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  executable.bind("x", TensorView(x.data(), DType::f32, {3, 12}));
  SymbolValues symbols;
  symbols.set(Symbol("T"), 3);
  executable.run(symbols);
  const TensorView y = executable.output("y");
  return {y.as<float>(), y.as<float>() + y.elements()};
}

TEST(ViewLayout, StridedPiecesGiveTheSameResultsAsCopies) {
  const char* text =
      "graph g {\n input %x : f32[T, 12]\n %n = neg(%x) : f32[T, 12]\n %a, %b = split(%n) {axis = -1, sizes = [4, 8]} "
      ": f32[T, 4], f32[T, 8]\n"
      " %h = reshape(%b) {shape = [0, 2, 4]} : f32[T, 2, 4]\n"
      " %s = softmax(%h) : f32[T, 2, 4]\n %m = neg(%a) : f32[T, 4]\n %flat = reshape(%s) {shape = [0, 8]} : f32[T, 8]\n"
      " %y = concat(%m, %flat, %b) {axis = 1} : f32[T, 20]\n output y = %y\n}";
  std::string folded, copied;
  EXPECT_EQ(run(text, {}, folded), run(text, {"fold-views"}, copied));
  EXPECT_EQ(folded.substr(0, 8), "3 views,") << folded;
}

TEST(ViewLayout, ResultsOfTheGraphAreCopied) {
  std::string note;
  run("graph g {\n input %x : f32[T, 12]\n %n = neg(%x) : f32[T, 12]\n %a, %y = split(%n) {axis = 1, sizes = [4, 8]} : "
      "f32[T, 4], f32[T, 8]\n output y = %y\n}",
      {}, note);
  EXPECT_EQ(note.substr(0, 8), "0 views,") << note;
}

}  // namespace
}  // namespace cermet
