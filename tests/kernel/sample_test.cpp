// What cases cannot express about `sample`: that frequencies are the probabilities, and which parameters are rejected.
#include <gtest/gtest.h>

#include <cmath>

#include "op/sample_parameters.hpp"
#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// `draws` sequences with the same logits and seed, steps 0, 1, 2 ...
struct Draws {
  std::vector<float> logits, temperature, top_p, penalty;
  std::vector<std::int32_t> top_k, ids;
  std::vector<std::int64_t> seeds, steps;

  Draws(std::size_t draws, const std::vector<float>& row)
      : temperature(draws, 1), top_p(draws, 1), penalty(draws, 1), top_k(draws), ids(draws), seeds(draws, 42) {
    for (std::size_t i = 0; i < draws; ++i) {
      logits.insert(logits.end(), row.begin(), row.end());
      steps.push_back(static_cast<std::int64_t>(i));
    }
  }

  void run() {
    const auto count = static_cast<std::int64_t>(ids.size()),
               vocabulary = static_cast<std::int64_t>(logits.size()) / count;
    std::vector<TensorView> views(sample_steps + 1);
    views[sample_logits] = {logits.data(), DType::f32, {count, vocabulary}};
    views[sample_temperature] = {temperature.data(), DType::f32, {count}};
    views[sample_top_k] = {top_k.data(), DType::i32, {count}};
    views[sample_top_p] = {top_p.data(), DType::f32, {count}};
    views[sample_penalty] = {penalty.data(), DType::f32, {count}};
    views[sample_seeds] = {seeds.data(), DType::i64, {count}};
    views[sample_steps] = {steps.data(), DType::i64, {count}};
    std::vector<std::optional<TensorType>> types;
    for (const TensorView& view : views) types.push_back(view.present ? std::optional(view.type()) : std::nullopt);
    const Problem problem = make_problem(definition(OpKind::sample), types, {});
    ThreadPool pool(2);
    BoundOp op(problem, select_kernel(problem), pool);
    const TensorView out(ids.data(), DType::i32, {count});
    op.run(views, {&out, 1});
  }
};

TEST(Sample, FrequenciesAreTheProbabilities) {
  constexpr std::size_t draws = 40000;
  const std::vector<double> probability{0.4, 0.25, 0.2, 0.1, 0.04, 0.01};
  std::vector<float> logits;
  for (const double p : probability) logits.push_back(static_cast<float>(std::log(p)) + 3);
  Draws d(draws, logits);
  d.run();
  std::vector<double> counts(probability.size());
  for (const std::int32_t id : d.ids) counts[static_cast<std::size_t>(id)] += 1;
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probability[i] * draws;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom: exceeded with probability 0.001
  EXPECT_GT(chi_square, 0.1);   // and this far below with probability 0.0002: draws must also not be too even
}

TEST(Sample, FiltersKeepWhatTheySay) {
  Draws d(2000, {1, 5, 2, 5, 4, -1});
  d.top_k.assign(2000, 3);
  d.run();
  std::vector<int> counts(6);
  for (const std::int32_t id : d.ids) ++counts[static_cast<std::size_t>(id)];
  EXPECT_EQ(counts[0] + counts[2] + counts[5], 0);
  EXPECT_GT(std::min({counts[1], counts[3], counts[4]}), 0);
  d.top_p.assign(2000, 0.4f);  // two equal leaders hold 42 % each of the three that stay: the first alone reaches 40 %
  d.run();
  for (const std::int32_t id : d.ids) EXPECT_EQ(id, 1);
}

TEST(Sample, RefusesParametersOutOfRange) {
  const auto message = [](auto change) {
    return error_text([&] {
      Draws d(3, {1, 2, 3});
      change(d);
      d.run();
    });
  };
  EXPECT_EQ(message([](Draws&) {}), "no error");
  EXPECT_EQ(message([](Draws& d) { d.temperature[1] = -1; }),
            "sample: operand 1 (temperature): expected a finite number, not negative, found -1 for sequence 1");
  EXPECT_EQ(message([](Draws& d) { d.top_p[2] = 0; }),
            "sample: operand 3 (top_p): expected a number above 0, at most 1, found 0 for sequence 2");
  EXPECT_EQ(message([](Draws& d) { d.top_k[0] = -4; }),
            "sample: operand 2 (top_k): expected a number of tokens, or 0 for all, found -4 for sequence 0");
  EXPECT_EQ(message([](Draws& d) { d.penalty[0] = NAN; }),
            "sample: operand 5 (repetition_penalty): expected a finite number above 0, found nan for sequence 0");
}

}  // namespace
}  // namespace cermet
