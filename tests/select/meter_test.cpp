// Measuring on this machine's CPU: what agrees, what does not, and a whole tuning of a small operator.
#include "select/tune/meter.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "op/schema/operator.hpp"
#include "select/tune/agreement.hpp"
#include "select/tune/job.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

Problem product(Dim m, std::int64_t n, std::int64_t k) {
  Problem problem =
      make_problem(definition(OpKind::linear), {TensorType{DType::f32, {m, k}}, TensorType{DType::f32, {n, k}}}, {});
  problem.constant_inputs = 2;
  return problem;
}

/// A kernel of a product that computes something else, or is slow.
struct Strange {
  Kernel kernel;
  explicit Strange(const Region& region, float added, std::chrono::milliseconds delay = {}) {
    const Kernel& inner = *select_kernel(region, {.tuned = false}).kernel;
    kernel = inner;
    kernel.name = "strange";
    kernel.bind = [&inner, added, delay](const Region& r) -> Launcher {
      return [launch = inner.bind(r, {}), added, delay](const LaunchArgs& args) {
        launch(args);
        std::this_thread::sleep_for(delay);
        args.outputs[0].as<float>()[3] += added;
      };
    };
  }
};

TEST(Meter, FindsWhatComputesSomethingElse) {
  ThreadPool pool(2);
  const Region region(product(5, 40, 64));
  Meter meter(region, region, pool, {}, {.seconds = 0.001});
  const Choice own = select_kernel(region, {.tuned = false});
  meter.expect(own);
  EXPECT_EQ(meter.check(own), "");
  const Strange wrong(region, 0.01f), close(region, 1e-7f);
  const std::string fault = meter.check(wrong.kernel);
  EXPECT_EQ(fault.find("result 0, compared element 3: expected "), 0u) << fault;
  EXPECT_NE(fault.find(", bound "), std::string::npos);
  EXPECT_EQ(meter.check(close.kernel), "") << "within the bound of float32 sums";
}

TEST(Meter, TimesAndGivesUp) {
  ThreadPool pool(1);
  const Region region(product(4, 32, 32));
  Meter meter(region, region, pool, {}, {.seconds = 0.002});
  const Strange slow(region, 0, std::chrono::milliseconds(5));
  const Timing fast = meter.time(select_kernel(region, {.tuned = false}));
  EXPECT_GT(fast.median, 0);
  EXPECT_FALSE(fast.given_up);
  const Timing given_up = meter.time(slow.kernel, 1e-3);
  EXPECT_TRUE(given_up.given_up);
  EXPECT_GE(given_up.median, 5e-3);
  EXPECT_FALSE(meter.time(slow.kernel).given_up);
  const PairedTiming pair = meter.compare(select_kernel(region, {.tuned = false}), slow.kernel, 0.001);
  EXPECT_GT(pair.ratio, 2);
  EXPECT_GT(pair.second.median, pair.first.median);
  EXPECT_GE(pair.noise, 0);
}

TEST(Meter, RunsThePassesOfASymbolicRegionAtTheirSizes) {
  ThreadPool pool(2);
  Problem problem = product(Dim(Symbol("T")), 48, 64);
  problem.maximum.set(Symbol("T"), 64);
  TuneJob job{.region = problem, .least = 3};
  std::vector<std::int64_t> sizes;
  for (const SymbolValues& values : sizes_of(job)) sizes.push_back(values[Symbol("T")]);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{64, 16, 4, 3}));
  EXPECT_EQ(with_sizes(job.region, sizes_of(job)[1]).to_string().find("linear(f32[16, 64]"), 0u);
  const TuneReport report = tune(job, {pool, {}}, {.seconds = 0.0005}, {.seconds = 1, .most = 12});
  EXPECT_GE(report.gain, 1);
  for (const TriedCandidate& tried : report.tried)
    EXPECT_EQ(tried.reason, "") << tried.choice.kernel->name << " " << tried.choice.config.to_string();
}

TEST(Agreement, BoundsAreTheOperators) {
  const Region region(product(2, 2, 64));
  const std::vector<double> expected{1, -2, 4, 8};
  const auto differs = [&](double by) { return !disagreement(region, 0, expected, {1, -2 + by, 4, 8}).empty(); };
  const double depth = definition(OpKind::linear).rounding_depth(region.problem());
  const double bound =
      0x1p-22 + 2 * depth * 0x1p-24 * 8;  // a unit in the last place of 2, and the roundings of sums of up to 8
  EXPECT_FALSE(differs(0.99 * bound));
  EXPECT_TRUE(differs(1.01 * bound));
  EXPECT_FALSE(disagreement(region, 0, expected, {1, -2, std::nan(""), 8}).empty());
  EXPECT_EQ(disagreement(region, 0, {std::nan("")}, {std::nan("")}), "");
  const Region exact(make_problem(definition(OpKind::argmax), {TensorType{DType::f32, {2, 8}}}, {}));
  EXPECT_EQ(disagreement(exact, 0, {3, 4}, {3, 4}), "");
  EXPECT_EQ(disagreement(exact, 0, {3, 4}, {3, 5}), "result 0, compared element 1: expected 4, found 5, bound 0");
}

TEST(Agreement, LargeResultsAreSampledFromTheFirstElementToTheLast) {
  OwnedTensor tensor(DType::f32, {3, 1 << 20});
  for (std::int64_t i = 0; i < tensor.view.elements(); ++i) tensor.view.as<float>()[i] = static_cast<float>(i);
  const std::vector<double> values = sampled_values(tensor.view, {});
  EXPECT_EQ(values.size(), 256u * 4096);
  EXPECT_EQ(values.front(), 0);
  EXPECT_EQ(values.back(), static_cast<double>(tensor.view.elements() - 1));
  OwnedTensor small(DType::i8, {5});
  std::memset(small.view.data, 7, 5);
  EXPECT_EQ(sampled_values(small.view, {}), std::vector<double>(5, 7));
}

/// The same seed gives the same candidates in the same order; only times differ.
TEST(Tuning, OfASmallProductOnThisMachine) {
  ThreadPool pool(2);
  const TuneJob job{.region = product(96, 64, 64)};
  const auto run = [&] {
    return tune(job, {pool, {}}, {.seconds = 0.0005}, {.search = SearchKind::random, .seed = 11, .seconds = 200});
  };  // far more than it takes
  const TuneReport report = run(), again = run();
  EXPECT_EQ(report.end, TuneReport::End::exhausted);
  EXPECT_EQ(report.tried.size(), report.candidates);
  EXPECT_GT(report.candidates, 14u) << "threads, panels and shares of rows";
  ASSERT_EQ(report.tried.size(), again.tried.size());
  for (std::size_t i = 0; i < report.tried.size(); ++i) {
    EXPECT_EQ(report.tried[i].choice, again.tried[i].choice);
    EXPECT_EQ(report.tried[i].reason, "")
        << report.tried[i].choice.kernel->name << " " << report.tried[i].choice.config.to_string();
  }
  EXPECT_GE(report.gain, 1);
}

}  // namespace
}  // namespace cermet
