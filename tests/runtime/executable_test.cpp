#include "runtime/executable.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "runtime/compile.hpp"
#include "tests/runtime/tokens.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

const Dim T = Dim::symbol("T");

/// A weight's elements: 0.5, 0.75, 1.0, ... repeating, so that every position of a row matters.
void load_ramp(const std::string&, std::int64_t, const TensorView& destination) {
  for (std::int64_t i = 0; i < destination.elements(); ++i)
    store(destination, i, 0.5 + 0.25 * static_cast<double>(i % 7));
}

OwnedTensor ramp(DType dtype, const Shape& shape, double start) {
  OwnedTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.view.elements(); ++i)
    store(tensor.view, i, start + 0.125 * static_cast<double>(i % 23) - 1);
  return tensor;
}

/// Two norms in a row: f32 [T, width] -> "y".
Graph two_norms(std::int64_t width) {
  Graph graph;
  graph.name = "two_norms";
  const ValueId x = graph.add_input("x", {DType::f32, {T, width}});
  const Graph::Scope scope(graph, "block");
  const ValueId a = graph.apply(OpKind::rms_norm, {x, graph.add_constant("w", {DType::f32, {width}})});
  graph.add_output("y", graph.apply(OpKind::rms_norm, {a}));
  return graph;
}

/// What two_norms computes, by the definition of the operator.
OwnedTensor two_norms_reference(const TensorView& x) {
  OwnedTensor weight(DType::f32, {x.shape.back()}), middle(DType::f32, x.shape), y(DType::f32, x.shape);
  load_ramp("w", -1, weight.view);
  const OpDefinition& op = definition(OpKind::rms_norm);
  const Problem problem = make_problem(op, {x.type(), weight.view.type()}, {});
  const TensorView first[] = {x, weight.view}, second[] = {middle.view, TensorView()};
  op.reference({first, {&middle.view, 1}, problem.attributes});
  op.reference({second, {&y.view, 1}, problem.attributes});
  return y;
}

void expect_near(const TensorView& found, const TensorView& expected) {
  ASSERT_EQ(found.shape, expected.shape);
  for (std::int64_t i = 0; i < expected.elements(); ++i)
    ASSERT_NEAR(load(found, i), load(expected, i), 1e-5) << "element " << i;
}

struct Fixture {
  ThreadPool pool{2};
  std::unique_ptr<Device> device = make_cpu_device();
  WeightStore weights{load_ramp, pool};

  Executable compiled(Graph graph, std::int64_t maximum) {
    CompileOptions options;
    options.maximum = tokens(maximum);
    return compile(std::move(graph), *device, weights, pool, options);
  }
};

TEST(Executable, ComputesWhatTheReferencesDoForEveryTokenCount) {
  Fixture f;
  Executable executable = f.compiled(two_norms(37), 9);
  for (const std::int64_t n : {9, 1, 4, 0, 9}) {
    const OwnedTensor x = ramp(DType::f32, {n, 37}, static_cast<double>(n));
    executable.bind("x", x.view);
    executable.run(tokens(n));
    expect_near(executable.output("y"), two_norms_reference(x.view).view);
  }
}

TEST(Executable, ReadsStridedInputs) {
  Fixture f;
  Executable executable = f.compiled(two_norms(16), 8);
  const OwnedTensor x = ramp(DType::f32, {5, 20}, 0);
  const TensorView slice(x.view.as<float>() + 3, DType::f32, {5, 16}, {20, 1});
  executable.bind("x", slice);
  executable.run(tokens(5));
  expect_near(executable.output("y"), two_norms_reference(slice).view);
}

TEST(Executable, RefusesWhatDoesNotFit) {
  Fixture f;
  Executable executable = f.compiled(two_norms(16), 8);
  const OwnedTensor x = ramp(DType::f32, {5, 16}, 0), wide = ramp(DType::f32, {5, 17}, 0),
                    half = ramp(DType::f16, {5, 16}, 0);
  EXPECT_EQ(error_text([&] { executable.run(tokens(5)); }),
            "input 'x': expected memory of type f32[T, 16], found none bound");
  EXPECT_EQ(error_text([&] { executable.bind("x", wide.view); }), "input 'x': expected f32[T, 16], found f32[5, 17]");
  EXPECT_EQ(error_text([&] { executable.bind("x", half.view); }), "input 'x': expected f32[T, 16], found f16[5, 16]");
  EXPECT_EQ(error_text([&] { executable.bind("w", x.view); }),
            "input 'w': expected an input of graph 'two_norms', found none of that name");
  EXPECT_EQ(error_text([&] {
              executable.bind("x", TensorView(x.view.data, DType::f32, {5, 16}, {1, 5}));
            }),
            "input 'x': expected the last 1 dimensions to be dense, found dimensions [5, 16] with strides [1, 5]");
  EXPECT_EQ(error_text([&] {
              executable.bind("x", TensorView(nullptr, DType::f32, {5, 16}));
            }),
            "input 'x': expected memory, found a null pointer");
  EXPECT_EQ(error_text([&] { executable.output("y"); }),
            "output 'y': expected a run that completed before it is read, found none");
  executable.bind("x", x.view);
  EXPECT_EQ(error_text([&] { executable.run(tokens(6)); }),
            "input 'x': expected room for f32[T, 16] = [6, 16], found [5, 16]");
  EXPECT_EQ(error_text([&] { executable.run(tokens(9)); }), "symbol 'T': expected 0 to 8, found 9");
  EXPECT_EQ(error_text([&] { executable.run(tokens(-1)); }), "symbol 'T': expected 0 to 8, found -1");
  executable.run(tokens(5));
  EXPECT_EQ(error_text([&] { executable.output("z"); }),
            "output 'z': expected an output of graph 'two_norms', found none of that name");
}

TEST(Executable, TwoOnOnePoolRunFromTwoThreads) {
  Fixture f;
  Executable a = f.compiled(two_norms(64), 32), b = f.compiled(two_norms(64), 32);
  const auto work = [](Executable& executable, double start) {
    const OwnedTensor x = ramp(DType::f32, {32, 64}, start);
    const OwnedTensor expected = two_norms_reference(x.view);
    executable.bind("x", x.view);
    for (int i = 0; i < 200; ++i) {
      executable.run(tokens(32));
      expect_near(executable.output("y"), expected.view);
    }
  };
  std::thread other([&] { work(b, 3); });
  work(a, 1);
  other.join();
}

/// Rows of B sequences of T tokens flattened, and every second of H columns: dimensions that are no multiples of one
/// symbol.
TEST(Executable, RunsWithDimensionsOfSeveralSymbols) {
  const Dim B = Dim::symbol("B");
  Graph graph;
  graph.name = "several";
  const ValueId x = graph.add_input("x", {DType::f32, {B, T, 6}}),
                z = graph.add_input("z", {DType::f32, {ceil_div(B * T, 2), 6}});
  const ValueId flat = graph.apply(OpKind::reshape, {x}, {{"shape", Ints{-1, 6}}});
  ASSERT_EQ(graph.type(flat).to_string(), "f32[B*T, 6]");
  const ValueId all = graph.apply(OpKind::concat, {flat, z}, {{"axis", std::int64_t{0}}});
  ASSERT_EQ(graph.type(all).to_string(), "f32[B*T+ceil(B*T/2), 6]");
  graph.add_output("y", graph.apply(OpKind::add, {all, all}));
  ThreadPool pool(2);
  WeightStore weights(load_ramp, pool);
  const auto device = make_cpu_device();
  CompileOptions options;
  options.maximum.set(Symbol("T"), 5);
  options.maximum.set(Symbol("B"), 4);
  Executable executable = compile(graph, *device, weights, pool, options);
  for (const auto& [b, t] : {std::pair{4, 5}, {1, 1}, {3, 3}, {2, 0}}) {
    const OwnedTensor from = ramp(DType::f32, {b, t, 6}, 0), more = ramp(DType::f32, {(b * t + 1) / 2, 6}, 7);
    executable.bind("x", from.view);
    executable.bind("z", more.view);
    SymbolValues values;
    values.set(Symbol("B"), b);
    values.set(Symbol("T"), t);
    executable.run(values);
    const TensorView y = executable.output("y");
    ASSERT_EQ(y.shape, (Shape{b * t + (b * t + 1) / 2, 6}));
    for (std::int64_t i = 0; i < y.elements(); ++i)
      ASSERT_EQ(load(y, i), 2 * (i < b * t * 6 ? load(from.view, i) : load(more.view, i - b * t * 6)))
          << b << " x " << t << ", element " << i;
  }
}

}  // namespace
}  // namespace cermet
