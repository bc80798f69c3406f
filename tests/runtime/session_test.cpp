#include "runtime/session.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "op/schema/reference.hpp"
#include "tests/model/plugin.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// A classifier over N rows that each mix M features: nothing of a decoder.
constexpr std::string_view classifier = R"(graph classifier {
  input %x : f32[N, 6]
  input %bias : f32[N+1, 3]
  input %keep : i32[M]
  constant %w : f32[3, 6]
  %h = silu(%x) : f32[N, 6]
  %scores = linear(%h, %w) : f32[N, 3]
  %p = softmax(%scores) : f32[N, 3]
  %b = gather(%bias, %keep) : f32[M, 3]
  output p = %p
  output b = %b
})";

void load_short_ramp(const std::string&, std::int64_t, const TensorView& destination) {
  for (std::int64_t i = 0; i < destination.elements(); ++i)
    store(destination, i, 0.25 * static_cast<double>(i % 5) - 0.5);
}

SessionOptions options_for(std::int64_t most) {
  SessionOptions options;
  for (const char* name : {"N", "M"}) options.maximum.set(Symbol(name), most);
  return options;
}

OwnedTensor filled(DType dtype, const Shape& shape, double step) {
  OwnedTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.view.elements(); ++i) store(tensor.view, i, step * static_cast<double>(i % 7));
  return tensor;
}

/// What the graph computes of row 0.
std::vector<double> first_row(const TensorView& x) {
  OwnedTensor w(DType::f32, {3, 6});
  load_short_ramp("w", -1, w.view);
  std::vector<double> scores(3);
  double sum = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i < 6; ++i)
      scores[static_cast<std::size_t>(c)] += load(x, i) / (1 + std::exp(-load(x, i))) * load(w.view, c * 6 + i);
    sum += std::exp(scores[static_cast<std::size_t>(c)]);
  }
  for (double& s : scores) s = std::exp(s) / sum;
  return scores;
}

TEST(Session, RunsAnyGraphByTheShapesOfItsInputs) {
  Context context({"cpu", 2});
  Session session(parse_graph(classifier), context, load_short_ramp, options_for(8));
  EXPECT_GE(session.weights().bytes(), 3 * 6 * 4);
  for (const std::int64_t n : {5, 1, 8, 5}) {
    const OwnedTensor x = filled(DType::f32, {n, 6}, 0.25), bias = filled(DType::f32, {n + 1, 3}, 0.5),
                      keep = filled(DType::i32, {2}, 1);
    session.bind("x", x.view);
    session.bind("bias", bias.view);
    session.bind("keep", keep.view);
    session.run();
    const TensorView p = session.output("p"), b = session.host_output("b");
    EXPECT_EQ(p.shape, Shape({n, 3}));
    ASSERT_EQ(b.shape, Shape({2, 3}));
    const std::vector<double> expected = first_row(x.view);
    for (std::int64_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(load(p, c), expected[static_cast<std::size_t>(c)], 1e-6);
      EXPECT_EQ(load(b, 3 + c), load(bias.view, 3 + c)) << "row 1";
    }
  }
}

TEST(Session, WritesResultsIntoTheCallersMemory) {
  Context context({"cpu", 1});
  Graph graph = parse_graph(classifier);
  graph.add_output("again", graph.find("p"));
  graph.add_output("raw", graph.find("x"));
  Session session(graph, context, load_short_ramp, options_for(8));
  const auto run = [&](std::int64_t rows) {
    OwnedTensor x = filled(DType::f32, {rows, 6}, 0.5), bias = filled(DType::f32, {rows + 1, 3}, 1),
                keep(DType::i32, {1});
    store(keep.view, 0, 0);
    session.bind("x", x.view);
    session.bind("bias", bias.view);
    session.bind("keep", keep.view);
    session.run();
    const std::vector<double> expected = first_row(x.view);
    for (const char* name : {"p", "again"})
      for (std::int64_t c = 0; c < 3; ++c)
        EXPECT_NEAR(load(session.output(name), c), expected[static_cast<std::size_t>(c)], 1e-6) << name;
  };
  OwnedTensor own(DType::f32, {8, 3});
  EXPECT_TRUE(session.bind_result("p", own.memory.data()));
  EXPECT_FALSE(session.bind_result("again", own.memory.data())) << "the same value under another name";
  EXPECT_FALSE(session.bind_result("raw", own.memory.data())) << "an input";
  EXPECT_EQ(error_text([&] { session.bind_result("q", nullptr); }),
            "output 'q': expected an output of graph 'classifier', found none of that name");
  for (const std::int64_t rows : {3, 8, 3}) {
    run(rows);
    EXPECT_EQ(session.output("p").data, own.memory.data());
    EXPECT_EQ(session.output("again").data, own.memory.data());
  }
  EXPECT_TRUE(session.bind_result("p", nullptr));
  const double before = load(own.view, 0);
  store(own.view, 0, 7);
  run(3);
  EXPECT_EQ(load(own.view, 0), 7) << "the arena's memory again";
  EXPECT_NEAR(load(session.output("p"), 0), before, 1e-6);
}

TEST(Session, RefusesShapesThatNoValuesGive) {
  Context context({"cpu", 1});
  Session session(parse_graph(classifier), context, load_short_ramp, options_for(8));
  const OwnedTensor x = filled(DType::f32, {5, 6}, 1), bias = filled(DType::f32, {5, 3}, 1),
                    keep = filled(DType::i32, {2}, 1);
  EXPECT_EQ(error_text([&] { session.run(); }), "input 'x': expected memory of type f32[N, 6], found none bound");
  session.bind("x", x.view);
  session.bind("bias", bias.view);
  session.bind("keep", keep.view);
  EXPECT_EQ(error_text([&] { session.run(); }),
            "input 'bias': expected f32[N+1, 3] = [6, 3], as other inputs have it, found [5, 3]");
  const OwnedTensor long_x = filled(DType::f32, {9, 6}, 1), long_bias = filled(DType::f32, {10, 3}, 1);
  session.bind("x", long_x.view);
  session.bind("bias", long_bias.view);
  EXPECT_EQ(error_text([&] { session.run(); }), "symbol 'N': expected 0 to 8, found 9");
  EXPECT_EQ(error_text([&] { session.bind("y", x.view); }),
            "input 'y': expected an input of graph 'classifier', found none of that name");
  EXPECT_EQ(error_text([&] { session.output("p"); }),
            "output 'p': expected a run that completed before it is read, found none");

  Session untold(
      parse_graph("graph g {\n input %x : f32[2*N]\n input %y : f32[4]\n %z = silu(%x) : f32[2*N]\n output z = %z\n}"),
      context, load_short_ramp, options_for(8));
  const OwnedTensor odd = filled(DType::f32, {5}, 1), four = filled(DType::f32, {4}, 1);
  untold.bind("x", odd.view);
  untold.bind("y", four.view);
  EXPECT_EQ(error_text([&] { untold.run(); }), "input 'x': expected f32[2*N] for some N, found [5]");
}

TEST(Session, FastRoundingKeepsWhatAKernelPassesOn) {
  const auto result = [](Rounding rounding) {
    Context context({"cpu", 1});
    SessionOptions options;
    options.fusion.rounding = rounding;
    const LoadWeight ones = [](const std::string&, std::int64_t, const TensorView& destination) {
      for (std::int64_t i = 0; i < destination.elements(); ++i) store(destination, i, 1);
    };
    Session session(parse_graph("graph g {\n input %x : bf16[2, 2]\n input %one : bf16[2, 4]\n constant %w : bf16[4, "
                                "2]\n %y = linear(%x, %w) : bf16[2, 4]\n"
                                " %z = sub(%y, %one) : bf16[2, 4]\n output z = %z\n}"),
                    context, ones, options);
    OwnedTensor x(DType::bf16, {2, 2}), one(DType::bf16, {2, 4});
    for (std::int64_t i = 0; i < 4; ++i) store(x.view, i, i % 2 == 0 ? 1 : 0x1p-10);
    for (std::int64_t i = 0; i < 8; ++i) store(one.view, i, 1);
    session.bind("x", x.view);
    session.bind("one", one.view);
    session.run();
    EXPECT_EQ(session.executable().steps().size(), 1U);
    return load(session.host_output("z"), 5);
  };
  EXPECT_EQ(result(Rounding::strict), 0);  // 1 + 2^-10 is 1 in bf16
  EXPECT_EQ(result(Rounding::fast), 0x1p-10);
}

TEST(Session, SharesWeights) {
  Context context({"cpu", 1});
  WeightStore weights(load_short_ramp, context.pool());
  Session one(parse_graph(classifier), context, weights, options_for(1));
  const std::int64_t bytes = weights.bytes();
  EXPECT_GT(bytes, 0);
  Session many(parse_graph(classifier), context, weights, options_for(8));
  EXPECT_EQ(&many.weights(), &one.weights());
}

TEST(Session, CompilesForADeviceThatIsNotThere) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Context context({"null:sm_90", 1});
  Session session(parse_graph(classifier), context, load_short_ramp, options_for(8));
  session.bind("x", TensorView(nullptr, DType::f32, {4, 6}));
  session.bind("bias", TensorView(nullptr, DType::f32, {5, 3}));
  session.bind("keep", TensorView(nullptr, DType::i32, {2}));
  session.run();
  EXPECT_EQ(session.executable().steps().size(), 4u);
  EXPECT_EQ(session.executable().plan().launches().size(), 4u);
}

}  // namespace
}  // namespace cermet
