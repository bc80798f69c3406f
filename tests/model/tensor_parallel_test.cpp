// What ranks that share a model hold, and what they say when they cannot.
#include <gtest/gtest.h>

#include <cmath>

#include "model/engine.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

EngineOptions shared_by(int ranks) {
  EngineOptions options;
  options.threads = 2;
  options.max_context = 256;
  options.tensor_parallel = ranks;
  return options;
}

TEST(TensorParallel, ARankHoldsItsShareOfWeightsAndCache) {
  const Engine whole = Engine::load(demo, shared_by(1)), half = Engine::load(demo, shared_by(2));
  EXPECT_NEAR(static_cast<double>(half.weight_bytes()) / static_cast<double>(whole.weight_bytes()), 0.5, 0.015);
  EXPECT_EQ(half.cache_bytes() * 2, whole.cache_bytes());
}

/// The root mean square of a difference, relative to that of the first.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(b[i] - a[i], 2);
    size += std::pow(a[i], 2);
  }
  return std::sqrt(error / size);
}

/// Ranks quantize their own parts of rows, so that scales differ from those of one rank.
void expect_nearly_the_logits_of_one_rank(const std::filesystem::path& model, std::optional<DType> weights, double bound) {
  const std::int32_t ids[] = {497, 2314, 1581, 302, 262};
  std::vector<float> one;
  for (const int ranks : {1, 2, 3}) {
    EngineOptions options = shared_by(ranks);
    options.weights = weights;
    Engine engine = Engine::load(model, options);
    const TensorView row = engine.prefill(0, ids);
    const std::vector<float> logits(row.as<const float>(), row.as<const float>() + row.elements());
    if (ranks == 1) one = logits;
    else EXPECT_LT(difference(one, logits), bound) << ranks << " ranks";
  }
}

TEST(TensorParallel, Int8WeightsGiveNearlyTheLogitsOfOneRank) { expect_nearly_the_logits_of_one_rank(demo, DType::i8, 0.03); }
TEST(TensorParallel, Fp8WeightsGiveNearlyTheLogitsOfOneRank) { expect_nearly_the_logits_of_one_rank(demo, DType::f8_e4m3, 0.1); }
TEST(TensorParallel, APackedCheckpointThatCannotBeCutIsRefusedByName) {
  test::expect_error(Status::unsupported, {"layers.5.mlp.down_proj", "multiple of 4 on each of 2 ranks, found 39"},
                     [] { Engine::load(model_data / "quantized/compressed-tensors", shared_by(2)); });
}

TEST(TensorParallel, OptionsThatDoNotFitAreRefused) {
  EngineOptions many = shared_by(2);
  many.max_sequences = 1000;
  many.max_batch_tokens = 1000;
  test::expect_error(Status::invalid_argument, {"max_sequences", "expected at most 250", "found 1000"}, [&] { Engine::load(small_model, many); });
  test::expect_error(Status::invalid_argument, {"tensor_parallel", "found -1"}, [] { Engine::load(small_model, shared_by(-1)); });
}

}  // namespace
}  // namespace cermet
