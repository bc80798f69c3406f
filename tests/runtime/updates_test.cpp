// State that a graph updates: Graph::updates(), and the compile step place-updates.
#include <gtest/gtest.h>

#include <random>

#include "graph/text.hpp"
#include "op/schema/reference.hpp"
#include "runtime/session.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

void load_short_steps(const std::string&, std::int64_t, const TensorView& destination) {
  for (std::int64_t i = 0; i < destination.elements(); ++i) store(destination, i, static_cast<double>(i % 5) - 2);
}

/// A graph in a session of its own, with memory for every input.
struct Updated {
  Context context{{"cpu", 2}};
  std::vector<CompileStep> report;
  Session session;
  std::vector<std::pair<std::string, OwnedTensor>> inputs;

  explicit Updated(std::string_view text, const SessionOptions& options = {})
      : session(parse_graph(text), context, load_short_steps, options, &report) {
    const Graph graph = parse_graph(text);
    for (const Value& value : graph.values()) {
      if (value.kind != ValueKind::input) continue;
      inputs.emplace_back(value.name, OwnedTensor(value.type.dtype, bind(value.type.dims, {})));
      const TensorView& view = inputs.back().second.view;
      for (std::int64_t i = 0; i < view.elements(); ++i)
        store(view, i,
              value.type.dtype == DType::f32 ? static_cast<double>((i + 3 * std::ssize(inputs)) % 7) - 3
                                             : static_cast<double>(i % 2));
      session.bind(value.name, view);
    }
  }
  std::vector<double> input(std::string_view name) {
    return elements(std::ranges::find(inputs, name, &decltype(inputs)::value_type::first)->second.view);
  }
  std::vector<double> output(std::string_view name) { return elements(session.output(name)); }
  std::string note() const { return std::ranges::find(report, "place-updates", &CompileStep::name)->note; }

  static std::vector<double> elements(const TensorView& view) {
    std::vector<double> list;
    for (std::int64_t i = 0; i < view.elements(); ++i) list.push_back(load(view, i));
    return list;
  }
};

TEST(Updates, AScatterWritesItsCacheInPlace) {
  Updated run(R"(graph cache {
  input %cache : f32[4, 3]
  input %at : i64[1, 3]
  input %row : f32[1, 3]
  %new = scatter(%cache, %at, %row) : f32[4, 3]
  %total = reduce_sum(%new) {axes = [0]} : f32[3]
  output total = %total
  update %cache = %new
})");
  EXPECT_EQ(run.note(), "1 of 1 updates in place, 0 copies");
  const std::vector<double> row = run.input("row");
  for (int i = 0; i < 3; ++i) {
    run.session.run();
    const std::vector<double> cache = run.input("cache");
    EXPECT_EQ(cache[0], row[0]) << "positions are 0, 1, 0";
    EXPECT_EQ(cache[4], row[1]);
    EXPECT_EQ(cache[2], row[2]);
    EXPECT_EQ(run.output("total")[1], cache[1] + cache[4] + cache[7] + cache[10]);
  }
}

TEST(Updates, ACounterWaitsForTheReadersOfTheOldValue) {
  Updated run(R"(graph counter {
  input %n : f32[1, 1]
  input %x : f32[1, 5]
  constant %one : f32[1] = tensor f32[1] 0x0000803f
  %next = add(%n, %one) : f32[1, 1]
  %y = softmax(%x) : f32[1, 5]
  %z = matmul(%n, %y) : f32[1, 5]
  output z = %z
  update %n = %next
})");
  EXPECT_EQ(run.note(), "1 of 1 updates in place, 0 copies");
  const double first = run.input("n")[0];
  for (int i = 0; i < 3; ++i) {
    run.session.run();
    EXPECT_EQ(run.input("n")[0], first + i + 1);
  }
}

TEST(Updates, InputsExchangeTheirValues) {
  Updated run(R"(graph exchange {
  input %a : f32[3]
  input %b : f32[3]
  output old = %a
  update %a = %b
  update %b = %a
})");
  const std::vector<double> a = run.input("a"), b = run.input("b");
  run.session.run();
  EXPECT_EQ(run.input("a"), b);
  EXPECT_EQ(run.input("b"), a);
  EXPECT_EQ(run.output("old"), a);
  EXPECT_EQ(run.session.executable().input_of_output("old"), "");
  run.session.run();
  EXPECT_EQ(run.input("a"), a);
}

TEST(Updates, AResultMayBeTheUpdatedMemory) {
  Updated run(R"(graph alias {
  input %a : f32[3]
  %b = relu(%a) : f32[3]
  output b = %b
  update %a = %b
})");
  EXPECT_EQ(run.session.executable().input_of_output("b"), "a");
  run.session.run();
  EXPECT_EQ(run.session.output("b").data, run.inputs[0].second.view.data);
}

TEST(Updates, ViewsOfWhatIsWrittenInPlace) {
  Updated run(R"(graph views {
  input %a : f32[2, 3]
  %b = neg(%a) : f32[2, 3]
  %c = reshape(%b) {shape = [3, 2]} : f32[3, 2]
  %d = softmax(%c) : f32[3, 2]
  %e = transpose(%c) {permutation = [1, 0]} : f32[2, 3]
  output d = %d
  output e = %e
  update %a = %b
})");
  const std::vector<double> a = run.input("a");
  run.session.run();
  EXPECT_EQ(run.input("a")[0], -a[0]);
  EXPECT_EQ(run.output("e"), (std::vector<double>{-a[0], -a[2], -a[4], -a[1], -a[3], -a[5]}));
}

TEST(Updates, ConstantsAndInputsAreCopied) {
  Updated run(R"(graph copies {
  input %a : f32[3]
  input %b : f32[3]
  input %c : f32[3]
  constant %w : f32[3]
  update %a = %w
  update %b = %c
  update %c = %c
})");
  EXPECT_EQ(run.note(), "1 of 3 updates in place, 2 copies");
  const std::vector<double> c = run.input("c");
  run.session.run();
  EXPECT_EQ(run.input("a"), (std::vector<double>{-2, -1, 0}));
  EXPECT_EQ(run.input("b"), c);
  EXPECT_EQ(run.input("c"), c);
}

TEST(Updates, StateIsDense) {
  Updated run(R"(graph dense {
  input %a : f32[2, 3]
  %b = relu(%a) : f32[2, 3]
  update %a = %b
})");
  OwnedTensor wide(DType::f32, {2, 4});
  EXPECT_EQ(error_text([&] {
              run.session.bind("a", TensorView(wide.view.data, DType::f32, {2, 3}, {4, 1}));
            }),
            "input 'a': expected the last 2 dimensions to be dense, found dimensions [2, 3] with strides [4, 1]");
}

/// A graph of nodes that read earlier values at random, as text without its last lines, and the values by name.
struct RandomGraph {
  std::string text = "graph random {\n";
  std::vector<std::string> values;
  std::size_t inputs = 0;
};

RandomGraph random_graph(std::mt19937& random) {
  RandomGraph made;
  made.inputs = 2 + random() % 3;
  const auto pick = [&] { return "%" + made.values[random() % made.values.size()]; };
  for (std::size_t i = 0; i < made.inputs; ++i) {
    made.values.push_back(fmt::format("x{}", i));
    made.text += fmt::format("  input %x{} : f32[4, 6]\n", i);
  }
  made.text += "  input %at : i64[2, 6]\n  input %new : f32[2, 6]\n";
  const std::size_t nodes = 1 + random() % 7;
  for (std::size_t n = 0; n < nodes; ++n) {
    const std::string name = fmt::format("v{}", n);
    switch (random() % 8) {
      case 0: made.text += fmt::format("  %{} = add({}, {}) : f32[4, 6]\n", name, pick(), pick()); break;
      case 1: made.text += fmt::format("  %{} = sub({}, {}) : f32[4, 6]\n", name, pick(), pick()); break;
      case 2: made.text += fmt::format("  %{} = relu({}) : f32[4, 6]\n", name, pick()); break;
      case 3: made.text += fmt::format("  %{} = scatter({}, %at, %new) : f32[4, 6]\n", name, pick()); break;
      case 4: made.text += fmt::format("  %{} = softmax({}) : f32[4, 6]\n", name, pick()); break;
      case 5: made.text += fmt::format("  %{} = cumsum({}) {{axis = 1}} : f32[4, 6]\n", name, pick()); break;
      case 6: made.text += fmt::format("  %{} = neg({}) : f32[4, 6]\n", name, pick()); break;
      default:
        made.text += fmt::format(
            "  %{0}t = reshape({1}) {{shape = [6, 4]}} : f32[6, 4]\n  %{0} = transpose(%{0}t) "
            "{{permutation = [1, 0]}} : f32[4, 6]\n",
            name, pick());
    }
    made.values.push_back(name);
  }
  return made;
}

/// The values that a graph without updates gives are what the state of one with updates is, whatever is fused and
/// written in place.
TEST(Updates, AreWhatTheGraphWithoutThemGives) {
  std::mt19937 random(5);
  std::size_t in_place = 0;
  for (int round = 0; round < 300; ++round) {
    const RandomGraph graph = random_graph(random);
    std::string plain = graph.text, updated = graph.text;
    std::vector<std::size_t> stored;  // by input
    for (std::size_t i = 0; i < graph.inputs; ++i) {
      stored.push_back(random() % graph.values.size());
      plain += fmt::format("  output s{} = %{}\n", i, graph.values[stored.back()]);
    }
    for (int o = 0; o < 2; ++o) {
      const std::string line = fmt::format("  output o{} = %{}\n", o, graph.values[random() % graph.values.size()]);
      plain += line;
      updated += line;
    }
    for (std::size_t i = 0; i < graph.inputs; ++i)
      updated += fmt::format("  update %x{} = %{}\n", i, graph.values[stored[i]]);
    SCOPED_TRACE(updated);
    SessionOptions options;
    if (round % 3 == 1) options.fusion.mode = FusionMode::none;
    if (round % 3 == 2) options.skip = {"fold-views", "rewrite"};
    Updated expected(plain + "}", options), actual(updated + "}", options);
    in_place += actual.note().starts_with("0 of") ? 0 : 1;
    for (int run = 0; run < 3; ++run) {
      expected.session.run();
      actual.session.run();
      for (const char* name : {"o0", "o1"}) ASSERT_EQ(actual.output(name), expected.output(name)) << "run " << run;
      for (std::size_t i = 0; i < graph.inputs; ++i)
        ASSERT_EQ(actual.input(fmt::format("x{}", i)), expected.output(fmt::format("s{}", i))) << "run " << run;
      std::vector<std::vector<double>> next;
      for (std::size_t i = 0; i < graph.inputs; ++i) next.push_back(expected.output(fmt::format("s{}", i)));
      for (std::size_t i = 0; i < graph.inputs; ++i)
        for (std::size_t e = 0; e < next[i].size(); ++e)
          store(expected.inputs[i].second.view, static_cast<std::int64_t>(e), next[i][e]);
    }
  }
  EXPECT_GT(in_place, 150u);
}

}  // namespace
}  // namespace cermet
