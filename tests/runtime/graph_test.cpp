// Whole graphs: kernels against references, options against each other, and no memory from the heap in a run.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/model/plugin.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/support/heap.hpp"

namespace cermet {
namespace {

class WholeGraph : public testing::TestWithParam<const char*> {
 protected:
  std::string name = GetParam();
};

/// Results of the last run, copied.
std::vector<std::vector<double>> results(GraphRunner& runner) {
  std::vector<std::vector<double>> all;
  for (const GraphOutput& output : runner.graph.outputs()) {
    const TensorView view = runner.executable.output(output.name);
    std::vector<double>& values = all.emplace_back();
    for (std::int64_t i = 0; i < view.elements(); ++i) values.push_back(load(view, i));
  }
  return all;
}

/// Sums in float32 and in double differ by about 1e-7 of their terms, so that their roundings to bfloat16, here and in
/// the values before, are the same but for one in thousands; where one is not, a result moves by a step or two of its
/// last place.
void expect_nearly_all_equal(const TensorView& found, const TensorView& wanted) {
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < found.elements(); ++i) {
    different += load(found, i) != load(wanted, i);
    ASSERT_NEAR(load(found, i), load(wanted, i), 0.06) << "element " << i;
  }
  EXPECT_LE(different, found.elements() / 100);
}

/// Float32 results of up to 8 are some roundings (5e-7 each) from those of the references: 4e-6 where this was written.
TEST_P(WholeGraph, ComputesWhatTheReferencesDo) {
  GraphRunner runner(name);
  for (Batch& batch : batches()) {
    const ReferenceRun expected(runner.graph, batch);
    runner.run(batch);
    for (const GraphOutput& output : runner.graph.outputs()) {
      const TensorView found = runner.executable.output(output.name), wanted = expected.output(output.name);
      ASSERT_EQ(found.shape, wanted.shape) << output.name;
      if (found.dtype == DType::bf16) expect_nearly_all_equal(found, wanted);
      else
        for (std::int64_t i = 0; i < found.elements(); ++i)
          ASSERT_NEAR(load(found, i), load(wanted, i), 2e-5) << output.name << " element " << i;
    }
  }
}

TEST_P(WholeGraph, OptionalStepsChangeNoBit) {
  GraphRunner whole(name);
  for (const CompileStepInfo& step : compile_steps()) {
    if (!step.optional) continue;
    GraphRunner without(name, {.maximum = {}, .skip = {std::string(step.name)}, .dump_after = ""});
    for (std::size_t b = 0; b < batches().size(); ++b) {
      const Batch first = std::move(batches()[b]), second = std::move(batches()[b]);  // each with a cache of its own
      whole.run(first);
      without.run(second);
      EXPECT_EQ(results(whole), results(without)) << "without " << step.name;
    }
  }
}

TEST_P(WholeGraph, ThreadsAndRunsChangeNoBit) {
  GraphRunner one(name, {}, "cpu", 1), three(name, {}, "cpu", 3);
  for (std::size_t b = 0; b < batches().size(); ++b) {
    const Batch first = std::move(batches()[b]), second = std::move(batches()[b]);
    one.run(first);
    three.run(second);
    const auto once = results(three);
    EXPECT_EQ(results(one), once);
    three.run(second);
    EXPECT_EQ(results(three), once) << "a second run writes the same tokens again";
  }
}

TEST_P(WholeGraph, RunsAllocateNothing) {
  GraphRunner runner(name);
  const std::vector<Batch> list = batches();
  for (const Batch& batch : list) runner.run(batch);  // threads may still be starting
  const std::int64_t before = heap::allocations();
  for (const Batch& batch : list)  // token counts and bound memory change from run to run
    for (int i = 0; i < 3; ++i) runner.run(batch);
  EXPECT_EQ(heap::allocations() - before, 0);
}

/// Nor do super-kernels, which are formed anew with every plan and walked in one session.
TEST_P(WholeGraph, SuperKernelsAllocateNothing) {
  CompileOptions options;
  options.fusion.super_kernel = {"all:*", "strict-scope-check=abort"};
  GraphRunner runner(name, options);
  const std::vector<Batch> list = batches();
  for (const Batch& batch : list) runner.run(batch);
  const std::int64_t before = heap::allocations();
  for (const Batch& batch : list)
    for (int i = 0; i < 3; ++i) runner.run(batch);
  EXPECT_EQ(heap::allocations() - before, 0);
}

/// On a GPU, launches are planned anew when token counts or bound memory change.
TEST_P(WholeGraph, PlansAllocateNothing) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  GraphRunner runner(name, {}, "null:sm_90");
  const std::vector<Batch> list = batches();
  const auto plan = [&] {
    std::size_t launches = 0;
    for (const Batch& batch : list) {
      runner.run(batch);
      launches += runner.executable.plan().launches().size();
    }
    return launches;
  };
  const std::size_t launches = plan();
  EXPECT_GT(launches, list.size());
  const std::int64_t before = heap::allocations();
  EXPECT_EQ(plan(), launches);
  EXPECT_EQ(heap::allocations() - before, 0);
}

TEST_P(WholeGraph, NullDeviceGoesThroughTheMotions) {
  GraphRunner real(name), null(name, {}, "null");
  EXPECT_EQ(null.weights.bytes(), 0) << "no weight is read";
  EXPECT_EQ(null.executable.arena_bytes(), real.executable.arena_bytes());
  ASSERT_EQ(null.executable.steps().size(), real.executable.steps().size());
  for (std::size_t i = 0; i < null.executable.steps().size(); ++i)
    EXPECT_EQ(null.executable.steps()[i].kernel, real.executable.steps()[i].kernel);
  Batch batch = std::move(batches()[2]);
  null.run(batch);
  for (const GraphOutput& output : null.graph.outputs()) {
    real.run(batch);
    EXPECT_EQ(null.executable.output(output.name).shape, real.executable.output(output.name).shape);
  }
  for (const Value& value : null.graph.values())
    if (value.kind == ValueKind::input)
      null.executable.bind(value.name,
                           TensorView(nullptr, value.type.dtype, cermet::bind(value.type.dims, batch.symbols)));
  null.executable.run(batch.symbols);
}

INSTANTIATE_TEST_SUITE_P(Graphs, WholeGraph, testing::Values("dense", "experts"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cermet
