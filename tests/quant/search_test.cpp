// Smoothing, static scales and the choice among them, on one module of a small checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "format/element.hpp"
#include "quant/outlier_search.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

constexpr LinearScheme fixed{LinearScheme::Weight::int8, LinearScheme::Input::fixed},
    dynamic{LinearScheme::Weight::int8, LinearScheme::Input::dynamic};

/// A copy of the model whose q, k and v of layer 0 have their first columns divided by 40.
std::filesystem::path quiet_columns(const test::ScratchFolder& scratch, int count) {
  const Checkpoint source = Checkpoint::open(small_model);
  std::filesystem::copy(small_model, scratch / "model");
  std::string file = test::content_of(scratch / "model/model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  for (const char* module : {"q_proj", "k_proj", "v_proj"}) {
    const StoredTensor& weight = *source.find(fmt::format("model.layers.0.self_attn.{}.weight", module));
    char* data = file.data() + 8 + header + weight.begin;
    for (std::int64_t i = 0; i < weight.elements(); ++i)
      if (i % weight.shape[1] < count)
        format::store_element(data, DType::f32, i, format::load_element(data, DType::f32, i) / 40);
  }
  scratch.file("model/model.safetensors", file);
  return scratch / "model";
}

/// Siblings q, k and v of layer 0 with made-up inputs: normal values, `loud` channels times 40, which the weights undo,
/// and one value in `rare` times 30.
struct Scene {
  test::ScratchFolder scratch;
  ThreadPool pool{2};
  Checkpoint checkpoint;
  std::vector<LinearModule> modules;
  QuantizeOptions options;
  InputStatistics statistics;
  SampledRows rows;
  std::vector<double> importance;
  std::unique_ptr<SearchUnit> unit;

  Scene(int loud, int rare)
      : checkpoint(Checkpoint::open(quiet_columns(scratch, loud))), modules(linear_modules(checkpoint.config())) {
    const std::int64_t columns = checkpoint.config().hidden_size, count = 96;
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(count * columns));
    for (std::int64_t i = 0; i < count * columns; ++i) {
      float& x = values[static_cast<std::size_t>(i)];
      x = normal(random);
      if (i % columns < loud) x *= 40;
      if (rare > 0 && random() % static_cast<unsigned>(rare) == 0) x *= 30;
    }
    statistics = InputStatistics(columns);
    statistics.add(values.data(), 64, nullptr);
    RowSample learned(columns, 64, 1), judged(columns, 32, 1);
    learned.offer(values.data(), 64);
    judged.offer(values.data() + 64 * columns, 32);
    rows = SampledRows(learned, judged, columns);
    for (std::int64_t k = 0; k < columns; ++k) importance.push_back(statistics.mean_square(k));
    unit = std::make_unique<SearchUnit>(std::vector<const LinearModule*>{&modules[0], &modules[1], &modules[2]},
                                        checkpoint, rows, importance, pool);
  }

  std::vector<Smoothing> smoothings() {
    std::vector<float> inputs, weights(importance.size());
    for (std::int64_t k = 0; k < statistics.columns(); ++k) inputs.push_back(statistics.absmax(k));
    for (std::size_t i = 0; i < 3; ++i) {
      const std::vector<float> absmax = column_absmax(unit->weight(i), pool);
      for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = std::max(weights[k], absmax[k]);
    }
    std::vector<Smoothing> list(1);
    for (const double alpha : {0.4, 0.6, 0.8}) list.push_back({alpha, smoothing_factors(inputs, weights, alpha)});
    return list;
  }

  OutlierChoice choose(AntiOutlier method, const LinearScheme& scheme) {
    options.anti_outlier = method;
    OutlierSearch search(options, scheme, statistics, smoothings());
    search.add(*unit);
    return search.choose();
  }

  double error(const OutlierChoice& choice, const LinearScheme& scheme) {
    UnitTrial trial(*unit, choice.smoothing, QuantizationGrid::of(scheme, options.range));
    double sum = 0;
    for (const SplitDistance& d :
         scheme == fixed ? trial.with_fixed_input(choice.input_scale) : trial.with_dynamic_input())
      sum += d.heldout.error;
    return sum;
  }
};

TEST(OutlierSearch, LoudChannelsAreSmoothed) {
  Scene scene(4, 0);
  for (const LinearScheme& scheme : {fixed, dynamic}) {
    const OutlierChoice none = scene.choose(AntiOutlier::none, scheme),
                        automatic = scene.choose(AntiOutlier::automatic, scheme);
    EXPECT_TRUE(none.method == AntiOutlier::none && none.smoothing.factors.empty());
    EXPECT_TRUE(automatic.method == AntiOutlier::smooth || automatic.method == AntiOutlier::both)
        << name_of(automatic.method);
    EXPECT_GT(automatic.smoothing.alpha, 0);
    EXPECT_LT(scene.error(automatic, scheme), scene.error(none, scheme) / 10);
  }
}

TEST(OutlierSearch, RareValuesAreClampedOrNot) {
  Scene scene(0, 2000);
  scene.options.clamp_percentile = 99.9;
  const OutlierChoice none = scene.choose(AntiOutlier::none, fixed), clamp = scene.choose(AntiOutlier::clamp, fixed),
                      automatic = scene.choose(AntiOutlier::automatic, fixed);
  EXPECT_EQ(clamp.method, AntiOutlier::clamp);
  EXPECT_LE(static_cast<double>(clamp.input_scale) * 127.5, scene.statistics.percentile(99.9) * 1.001);
  EXPECT_GE(static_cast<double>(none.input_scale) * 127.5, scene.statistics.percentile(99.9) * 0.999);
  EXPECT_LE(scene.error(automatic, fixed), std::min(scene.error(none, fixed), scene.error(clamp, fixed)));
}

TEST(OutlierSearch, MethodsThatCannotBeAreReplaced) {
  Scene scene(2, 0);
  EXPECT_EQ(scene.choose(AntiOutlier::clamp, dynamic).method, AntiOutlier::none);
  EXPECT_EQ(scene.choose(AntiOutlier::both, dynamic).method, AntiOutlier::smooth);
  EXPECT_EQ(scene.choose(AntiOutlier::both, fixed).method, AntiOutlier::both);
  EXPECT_EQ(scene.choose(AntiOutlier::smooth, fixed).method, AntiOutlier::smooth);
}

TEST(OutlierSearch, TheFixedScaleIsTheBestOfThoseTried) {
  Scene scene(0, 500);
  const OutlierChoice chosen = scene.choose(AntiOutlier::none, fixed);
  const auto error_at = [&](float scale) {
    UnitTrial trial(*scene.unit, {}, QuantizationGrid::int8(127.5));
    double sum = 0;
    for (const SplitDistance& d : trial.with_fixed_input(scale)) sum += d.calibration.error;
    return sum;
  };
  const double least = error_at(chosen.input_scale);
  const auto points = scale_points(scene.statistics.absmax(), scene.statistics.percentile(99.9),
                                   QuantizationGrid::int8(127.5), DType::f32, false);
  ASSERT_GT(points.size(), 5u);
  for (const ScalePoint& point : points) EXPECT_LE(point.clamped ? 0 : least, error_at(point.scale));
}

TEST(ScalePoints, AreStoredScalesFromTheLargestValueDown) {
  const auto points = scale_points(100, 10, QuantizationGrid::int8(127), DType::bf16, false);
  const auto coarse = scale_points(100, 10, QuantizationGrid::int8(127), DType::bf16, true);
  EXPECT_LT(coarse.size(), points.size());
  EXPECT_TRUE(coarse.front().scale == points.front().scale && coarse.back().scale == points.back().scale);
  EXPECT_EQ(points.front().scale, static_cast<float>(format::rounded_to(DType::bf16, 100.0 / 127)));
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_LE(points[i].scale, points[i - 1].scale);
  for (const ScalePoint& point : points) {
    EXPECT_EQ(static_cast<double>(point.scale), format::rounded_to(DType::bf16, static_cast<double>(point.scale)));
    EXPECT_LE(static_cast<double>(point.scale) * 127, (point.clamped ? 10 : 100) * 1.01);
  }
  EXPECT_EQ(scale_points(0, 0, QuantizationGrid::fp8(), DType::bf16, false).front().scale, 1) << "an input of zeros";
}

TEST(Smoothing, FactorsBalanceInputsAndWeights) {
  const std::vector<float> inputs{1, 100, 1, 0}, weights{1, 1, 4, 1};
  const std::vector<float> factors = smoothing_factors(inputs, weights, 0.5);
  EXPECT_NEAR(static_cast<double>(factors[1] / factors[0]), 10, 1e-4);
  EXPECT_NEAR(static_cast<double>(factors[0] / factors[2]), 2, 1e-5);
  EXPECT_EQ(factors[3], 1) << "nothing is known of it";
  EXPECT_NEAR(static_cast<double>(factors[0] * factors[1] * factors[2]), 1, 1e-5) << "their geometric mean";
  const std::vector<float> all = smoothing_factors(inputs, weights, 1.0);
  EXPECT_NEAR(static_cast<double>(all[1] / all[0]), 100, 1e-3);
}

TEST(Smoothing, FoldedFactorsUndoTheRoundingOfTheNorm) {
  ThreadPool pool(1);
  OwnedTensor norm(DType::bf16, {64});
  std::vector<float> factors(64);
  std::mt19937 random(2);
  for (std::int64_t k = 0; k < 64; ++k) {
    format::store_element(norm.memory.data(), DType::bf16, k,
                          k == 5 ? 0 : 0.5 + static_cast<double>(random() % 1000) / 700);
    factors[static_cast<std::size_t>(k)] = 0.1f + static_cast<float>(random() % 1000) / 77;
  }
  const std::vector<float> exact = as_folded(factors, norm.view, 0, pool);
  const OwnedTensor folded = scaled_tensor(norm.view, {reciprocals(exact), {}}, pool);
  for (std::int64_t k = 0; k < 64; ++k) {
    const double before = format::load_element(norm.memory.data(), DType::bf16, k),
                 after = format::load_element(folded.memory.data(), DType::bf16, k);
    const double factor = static_cast<double>(exact[static_cast<std::size_t>(k)]);
    EXPECT_NEAR(after * factor, before, before * 1e-6);
    if (k == 5) continue;  // a zero is not a quotient
    EXPECT_NEAR(factor / static_cast<double>(factors[static_cast<std::size_t>(k)]), 1, 1.0 / 128);
  }
}

TEST(Smoothing, ANormIsScaledWithTheOffsetOfItsWeight) {
  ThreadPool pool(1);
  OwnedTensor norm(DType::f32, {3});
  const float weights[] = {0.5f, -0.25f, -1.0f}, factors[] = {2.0f, 0.5f, 3.0f};
  std::copy_n(weights, 3, norm.view.as<float>());
  const OwnedTensor scaled = scaled_norm(norm.view, 1, factors, pool);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(1 + scaled.view.as<float>()[k], (1 + weights[k]) * factors[k]) << k;
  const std::vector<float> folded = as_folded(factors, norm.view, 1, pool);
  EXPECT_EQ(folded, (std::vector<float>{2.0f, 0.5f, 1.0f})) << "a zero is not a quotient";
}

TEST(Smoothing, PowersOfTwoAndSharedFactors) {
  std::vector<float> factors{0.7f, 1.4f, 1.42f, 96, 0.012f};
  round_to_powers_of_two(factors);
  EXPECT_EQ(factors, (std::vector<float>{0.5f, 1, 2, 128, 1.0f / 64}));
  const std::vector<std::int64_t> source{0, 1, 0, 1, 2};  // two heads share a value head
  EXPECT_EQ(absmax_by_source(std::vector<float>{1, 2, 3, 1, 9}, source, 3), (std::vector<float>{3, 2, 9}));
  EXPECT_EQ(spread(std::vector<float>{5, 6, 7}, source), (std::vector<float>{5, 6, 5, 6, 7}));
}

}  // namespace
}  // namespace cermet
