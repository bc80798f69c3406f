#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "quant/input_statistics.hpp"
#include "quant/row_sample.hpp"

namespace cermet {
namespace {

std::vector<float> random_rows(std::int64_t rows, std::int64_t columns) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = normal(random) * (i % static_cast<std::size_t>(columns) == 3 ? 50.0f : 1.0f);
  return values;
}

InputStatistics statistics_of(const std::vector<float>& rows, std::int64_t columns, ThreadPool* pool,
                              std::int64_t step) {
  InputStatistics statistics(columns);
  const auto count = static_cast<std::int64_t>(rows.size()) / columns;
  for (std::int64_t r = 0; r < count; r += step)
    statistics.add(rows.data() + r * columns, std::min(step, count - r), pool);
  return statistics;
}

TEST(InputStatistics, PercentilesAreThoseOfTheValues) {
  const std::vector<float> rows = random_rows(500, 200);
  const InputStatistics statistics = statistics_of(rows, 200, nullptr, 100);
  for (const double percentage : {50.0, 90.0, 99.0, 99.9, 99.99}) {
    const double exact = percentile_of(rows, percentage);
    EXPECT_NEAR(statistics.percentile(percentage), exact, exact / 64) << percentage;
  }
  EXPECT_EQ(statistics.percentile(100), statistics.absmax());
  EXPECT_EQ(percentile_of(std::vector<float>{-4, 1, 2, -3}, 100), 4);
  EXPECT_EQ(percentile_of(std::vector<float>{-4, 1, 2, -3}, 50), 2.5);
  EXPECT_EQ(percentile_of({}, 50), 0);
  EXPECT_EQ(InputStatistics(5).percentile(99), 0);
}

TEST(InputStatistics, ChannelsAreExact) {
  const std::vector<float> rows = random_rows(64, 37);
  const InputStatistics statistics = statistics_of(rows, 37, nullptr, 64);
  double absmax = 0;
  for (std::int64_t c = 0; c < 37; ++c) {
    float largest = 0;
    double squares = 0;
    for (std::int64_t r = 0; r < 64; ++r) {
      const float x = rows[static_cast<std::size_t>(r * 37 + c)];
      largest = std::max(largest, std::abs(x));
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    EXPECT_EQ(statistics.absmax(c), largest) << c;
    EXPECT_NEAR(statistics.mean_square(c), squares / 64, squares / 64 * 1e-5) << c;
    absmax = std::max(absmax, static_cast<double>(largest));
  }
  EXPECT_EQ(statistics.absmax(), absmax);
  EXPECT_EQ(statistics.rows(), 64);
}

TEST(InputStatistics, ThreadsChangeNothing) {
  const std::vector<float> rows = random_rows(300, 700);
  ThreadPool three(3);
  const InputStatistics one = statistics_of(rows, 700, nullptr, 128), other = statistics_of(rows, 700, &three, 128);
  for (std::int64_t c = 0; c < 700; ++c) {
    EXPECT_EQ(one.absmax(c), other.absmax(c));
    EXPECT_EQ(one.mean_square(c), other.mean_square(c));
  }
  for (const double percentage : {10.0, 99.9}) EXPECT_EQ(one.percentile(percentage), other.percentile(percentage));
}

TEST(InputStatistics, NotANumberIsSeen) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> rows = random_rows(4, 9);
    EXPECT_TRUE(statistics_of(rows, 9, nullptr, 4).is_finite());
    rows[11] = bad;
    EXPECT_FALSE(statistics_of(rows, 9, nullptr, 4).is_finite());
  }
}

std::vector<float> sample_of(std::int64_t rows, std::int64_t capacity, std::int64_t step, std::uint64_t seed) {
  std::vector<float> all(static_cast<std::size_t>(rows * 2));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  RowSample sample(2, capacity, seed);
  for (std::int64_t r = 0; r < rows; r += step) sample.offer(all.data() + r * 2, std::min(step, rows - r));
  EXPECT_EQ(sample.offered(), rows);
  std::vector<float> kept(static_cast<std::size_t>(sample.size() * 2));
  sample.copy_to(kept.data());
  return kept;
}

TEST(RowSample, TheChoiceDependsOnTheSeedAlone) {
  const std::vector<float> kept = sample_of(1000, 32, 1000, 5);
  ASSERT_EQ(kept.size(), 64u);
  EXPECT_EQ(kept, sample_of(1000, 32, 7, 5));
  EXPECT_NE(kept, sample_of(1000, 32, 7, 6));
  double mean = 0;
  for (std::size_t i = 0; i < kept.size(); i += 2) {
    EXPECT_EQ(kept[i] + 1, kept[i + 1]) << "whole rows";
    if (i > 0) {
      EXPECT_LT(kept[i - 2], kept[i]) << "each once, in their order";
    }
    mean += static_cast<double>(kept[i]) / 2 / 32;
  }
  EXPECT_NEAR(mean, 500, 200);  // from everywhere: four deviations of a mean of 32
}

TEST(RowSample, FewRowsAreAllKept) {
  EXPECT_EQ(sample_of(5, 32, 2, 1), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(sample_of(5, 0, 2, 1).empty());
}

}  // namespace
}  // namespace cermet
