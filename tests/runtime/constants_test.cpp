#include "runtime/constants.hpp"

#include <gtest/gtest.h>

#include "graph/text.hpp"
#include "op/schema/reference.hpp"
#include "runtime/compile.hpp"
#include "tests/runtime/reversed.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// Element i of weight "wN" is 100 N + i; notes every request.
struct Weights {
  ThreadPool pool{2};
  std::vector<std::string> requests;
  WeightStore store{[this](const std::string& name, std::int64_t slice, const TensorView& to) {
                      requests.push_back(fmt::format("{}[{}] {}", name, slice, to.type().to_string()));
                      if (name == "absent") fail(Status::invalid_file, "tensor 'absent': expected one, found none");
                      for (std::int64_t i = 0; i < to.elements(); ++i)
                        cermet::store(to, i, static_cast<double>(100 * (name.back() - '0') + i));
                    },
                    pool};

  std::vector<double> get(const Graph& graph, std::string_view name, const WeightLayout* layout = nullptr) {
    const TensorView view = store.get(graph, graph.find(name), layout);
    std::vector<double> values;
    for (std::int64_t i = 0; i < view.elements(); ++i) values.push_back(load(view, i));
    return values;
  }
};

const char* const constants = R"(graph g {
  constant %w1 : f32[1, 2]
  constant %w2 : f32[2, 2]
  constant %rows : f32[3, 2] = concat(%w1, %w2)
  constant %columns : f32[2, 3] = transpose(%rows)
  constant %data : f32[2] = tensor f32[2] 0x0000803f00000040
  constant %more : f32[3, 2] = mul(%rows, %data)
  constant %half : bf16[3, 2] = cast(%more) {out_dtype = "bf16"}
  constant %last : f32[2, 1] = split(%columns) {axis = 1, sizes = [2, 1]} [1]
  constant %stack : f32[2, 1, 3] = reshape(%columns) {shape = [2, 1, 3]}
}
)";

TEST(Constants, AreLoadedCopiedOrComputed) {
  Weights weights;
  const Graph graph = parse_graph(constants);
  EXPECT_EQ(weights.get(graph, "rows"), (std::vector<double>{100, 101, 200, 201, 202, 203}));
  EXPECT_EQ(weights.requests, (std::vector<std::string>{"w1[-1] f32[1, 2]", "w2[-1] f32[2, 2]"}));
  EXPECT_EQ(weights.get(graph, "columns"), (std::vector<double>{100, 200, 202, 101, 201, 203}));
  EXPECT_EQ(weights.get(graph, "data"), (std::vector<double>{1, 2}));
  EXPECT_EQ(weights.get(graph, "more"), (std::vector<double>{100, 202, 200, 402, 202, 406}));
  EXPECT_EQ(weights.get(graph, "half"), (std::vector<double>{100, 202, 200, 402, 202, 406}));
  EXPECT_EQ(weights.get(graph, "last"), (std::vector<double>{202, 203}));
  EXPECT_EQ(weights.get(graph, "w1"), (std::vector<double>{100, 101}));
}

TEST(Constants, ArePackedAsWeightsAre) {
  Weights weights;
  const Graph graph = parse_graph(constants);
  EXPECT_EQ(weights.get(graph, "rows", &reversed), (std::vector<double>{202, 203, 200, 201, 100, 101}));
  weights.requests.clear();
  const TensorView stack = weights.store.get(graph, graph.find("stack"), &reversed);
  EXPECT_EQ(stack.as<float>()[0], 100);
  EXPECT_EQ(stack.as<float>()[16], 101) << "the second matrix, at a 64-byte step";
  EXPECT_EQ(weights.requests.size(), 2u) << "computed once, not once for each matrix";
}

/// Names differ between graphs, and equal names may mean other elements.
TEST(Constants, EqualOnesOfSeveralGraphsAreOne) {
  Weights weights;
  const Graph a = parse_graph(
      "graph a {\n constant %w1 : f32[2]\n constant %w2 : f32[2]\n constant %both : f32[4] = concat(%w1, %w2)\n}");
  const Graph b = parse_graph(
      "graph b {\n constant %w2 : f32[2]\n constant %w1 : f32[2]\n constant %pair : f32[4] = concat(%w1, %w2)\n}");
  const Graph c = parse_graph(
      "graph c {\n constant %w1 : f32[2]\n constant %w2 : f32[2]\n constant %both : f32[4] = concat(%w2, %w1)\n}");
  EXPECT_EQ(weights.store.get(a, a.find("both"), nullptr).data, weights.store.get(b, b.find("pair"), nullptr).data);
  EXPECT_EQ(weights.get(c, "both"), (std::vector<double>{200, 201, 100, 101}));
  EXPECT_EQ(weights.store.bytes(), 32);
  const auto data = [](float value) {
    Graph graph;
    graph.add_constant("d", TensorData::of<float>({DType::f32, {1}}, {value}));
    return graph;
  };
  EXPECT_EQ(weights.get(data(1), "d"), std::vector<double>{1});
  EXPECT_EQ(weights.get(data(2), "d"), std::vector<double>{2});
}

TEST(Constants, ErrorsNameTheConstantAndWhatIsMissing) {
  Weights weights;
  const Graph graph = parse_graph(
      "graph g {\n constant %w1 : f32[2]\n constant %absent : f32[2]\n constant %both : f32[4] = concat(%w1, %absent)\n"
      " constant %sum : f32[4] = add(%both, %both)\n}");
  EXPECT_EQ(error_text([&] { weights.get(graph, "both"); }),
            "constant 'both': operand 'absent': tensor 'absent': expected one, found none");
  EXPECT_EQ(
      error_text([&] { weights.get(graph, "sum"); }),
      "constant 'sum': operand 'both': constant 'both': operand 'absent': tensor 'absent': expected one, found none");
  EXPECT_EQ(weights.store.bytes(), 0);
}

/// Three products of one operand, and one of their weights stacked.
TEST(Constants, StackedProjectionsRunAsTheirParts) {
  const std::string head = "graph g {\n input %x : f32[3, 4]\n constant %w1 : f32[2, 4]\n constant %w2 : f32[3, 4]\n";
  const Graph apart = parse_graph(
      head + " %a = linear(%x, %w1) : f32[3, 2]\n %b = linear(%x, %w2) : f32[3, 3]\n output a = %a\n output b = %b\n}");
  const Graph stacked = parse_graph(
      head +
      " constant %both : f32[5, 4] = concat(%w1, %w2)\n %y = linear(%x, %both) : f32[3, 5]\n"
      " %a, %b = split(%y) {axis = -1, sizes = [2, 3]} : f32[3, 2], f32[3, 3]\n output a = %a\n output b = %b\n}");
  Weights weights;
  const auto device = make_cpu_device();
  std::vector<std::vector<double>> results;
  OwnedTensor x(DType::f32, {3, 4});
  for (int i = 0; i < 12; ++i) x.view.as<float>()[i] = static_cast<float>(i % 5) - 2.0f;
  for (const Graph& graph : {apart, stacked}) {
    Executable executable = compile(graph, *device, weights.store, weights.pool, {});
    executable.bind("x", x.view);
    executable.run({});
    std::vector<double>& values = results.emplace_back();
    for (const char* name : {"a", "b"})
      for (std::int64_t i = 0; i < executable.output(name).elements(); ++i) {
        const TensorView view = executable.output(name);
        const std::int64_t columns = view.shape[1];
        values.push_back(view.as<float>()[i / columns * view.strides[0] + i % columns]);
      }
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], std::vector<double>(15));
}

}  // namespace
}  // namespace cermet
