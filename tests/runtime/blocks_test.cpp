// What small graphs of models become on the CPU: the blocks as golden text, and the bits of operators one after
// another.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/graph_harness.hpp"

namespace cermet {
namespace {

/// The graph's integers, which stay below the rows that they pick.
void fill_integers(const std::string& name, const TensorView& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    store(tensor, i, static_cast<double>((i * 7 + static_cast<std::int64_t>(name.size())) % 3 * (i % 17)));
}

/// Results of a run with B sequences, and a line for each launch.
struct Ran {
  std::vector<OwnedTensor> results;
  std::string blocks;

  Ran(const std::string& name, std::int64_t sequences, FusionMode mode) {
    CompileOptions options;
    options.fusion.mode = mode;
    GraphRunner runner(name, options);
    std::vector<OwnedTensor> inputs;
    SymbolValues symbols;
    symbols.set(Symbol("B"), sequences);
    for (const Value& value : runner.graph.values()) {
      if (value.kind != ValueKind::input) continue;
      inputs.emplace_back(value.type.dtype, cermet::bind(value.type.dims, symbols));
      fill_integers(value.name, inputs.back().view);
      runner.executable.bind(value.name, inputs.back().view);
    }
    runner.executable.run(symbols);
    for (const StepInfo& step : runner.executable.steps())
      blocks += fmt::format("{}: {}\n", step.kernel, step.region.operators());
    for (const GraphOutput& output : runner.graph.outputs()) {
      const TensorView view = runner.executable.output(output.name);
      OwnedTensor& copy = results.emplace_back(view.dtype, view.shape);
      std::memcpy(copy.view.data, view.data, static_cast<std::size_t>(dense_bytes(view.dtype, view.shape)));
    }
  }
};

TEST(Blocks, EmbeddingsAndTheMaskAreOneEach) {
  for (const std::int64_t sequences : {1, 3}) {
    const Ran full("embeddings", sequences, FusionMode::full), none("embeddings", sequences, FusionMode::none);
    expect_golden("runtime/golden/embeddings.blocks", full.blocks);
    EXPECT_GT(std::ranges::count(none.blocks, '\n'), 2 * std::ranges::count(full.blocks, '\n'));
    for (std::size_t r = 0; r < full.results.size(); ++r) {
      const TensorView &a = full.results[r].view, &b = none.results[r].view;
      EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<std::size_t>(dense_bytes(a.dtype, a.shape))), 0)
          << "result " << r;
    }
  }
}

}  // namespace
}  // namespace cermet
