// Tokens of many sequences, chosen together, are those that each would get alone.
#include "model/batch_sampler.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

constexpr std::int64_t vocabulary = 777;

std::vector<float> some_logits(std::int64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(static_cast<std::size_t>(rows * vocabulary));
  for (float& x : logits) x = normal(random);
  return logits;
}

std::vector<Sampling> some_samplings() {
  return {{},
          {.temperature = 0.9, .seed = 3},
          {.temperature = 1.1, .top_k = 20, .seed = 4},
          {.temperature = 0.7, .top_p = 0.8, .min_p = 0.01, .seed = 5},
          {.temperature = 0.8, .repetition_penalty = 1.5, .seed = 6},
          {.repetition_penalty = 1.3}};
}

TEST(BatchSampler, EachSequenceGetsWhatItGetsAlone) {
  ThreadPool pool(2);
  const std::vector<Sampling> samplings = some_samplings();
  const auto count = std::ssize(samplings);
  BatchSampler together(count, vocabulary, pool);
  std::vector<std::unique_ptr<Sampler>> alone;
  const std::vector<std::int32_t> prompt{1, 5, 9};
  for (int s = 0; s < count; ++s) {
    together.begin(s, samplings[static_cast<std::size_t>(s)], prompt);
    alone.push_back(std::make_unique<Sampler>(samplings[static_cast<std::size_t>(s)], vocabulary, pool));
    alone.back()->remember(prompt);
  }
  for (unsigned step = 0; step < 12; ++step) {
    std::vector<int> sequences;  // another order in each step; a row of none, and a sequence that is left out
    for (int i = 0; i < count; ++i)
      sequences.push_back(static_cast<int>((static_cast<unsigned>(i) * 5 + step) % static_cast<unsigned>(count)));
    if (step % 3 == 1) sequences[2] = -1;
    if (step % 4 == 2) sequences.pop_back();
    std::vector<float> logits = some_logits(std::ssize(sequences), step);
    const std::span<const std::int32_t> ids =
        together.choose(TensorView(logits.data(), DType::f32, {std::ssize(sequences), vocabulary}), sequences);
    ASSERT_EQ(ids.size(), sequences.size());
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      if (sequences[i] < 0) continue;
      const TensorView row(logits.data() + static_cast<std::int64_t>(i) * vocabulary, DType::f32, {1, vocabulary});
      EXPECT_EQ(ids[i], alone[static_cast<std::size_t>(sequences[i])]->next(row))
          << "step " << step << ", sequence " << sequences[i];
    }
  }
}

TEST(BatchSampler, TakesTokensThatWereFoundElsewhereWhereAllTakeTheLargest) {
  ThreadPool pool(1);
  BatchSampler sampler(3, vocabulary, pool);
  sampler.begin(0, {});
  sampler.begin(1, {.temperature = 1});
  sampler.begin(2, {.repetition_penalty = 1.5});
  EXPECT_TRUE(sampler.take_largest(std::array{0, -1, 0}));
  EXPECT_FALSE(sampler.take_largest(std::array{0, 1}));
  EXPECT_FALSE(sampler.take_largest(std::array{2}));
  std::array<std::int32_t, 2> found{5, 3};
  const std::span<const std::int32_t> ids =
      sampler.choose(TensorView(found.data(), DType::i32, {2}), std::array{0, -1});
  EXPECT_EQ(ids[0], 5);
  EXPECT_EQ(sampler.draws(0), 1);
}

TEST(BatchSampler, ASequenceThatBeginsAnewForgetsTheLast) {
  ThreadPool pool(1);
  BatchSampler sampler(2, vocabulary, pool);
  std::vector<float> logits = some_logits(1, 1);
  const TensorView row(logits.data(), DType::f32, {1, vocabulary});
  const Sampling random{.temperature = 3, .seed = 8};
  const std::vector<int> second{1};
  sampler.begin(1, random);
  const std::int32_t first = sampler.choose(row, second)[0], next = sampler.choose(row, second)[0];
  EXPECT_NE(first, next);
  sampler.begin(1, random);
  EXPECT_EQ(sampler.choose(row, second)[0], first);
  EXPECT_EQ(error_text([&] { sampler.begin(0, {.top_p = 0}); }), "top_p: expected a number in (0, 1], found 0");
}

}  // namespace
}  // namespace cermet
