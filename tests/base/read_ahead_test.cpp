#include "base/read_ahead.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cermet {
namespace {

constexpr std::int64_t step_bytes = 256;

/// How many steps are left to ask for.
std::int64_t steps_of(AheadReader& reader) {
  std::int64_t steps = 0;
  while (reader.step()) ++steps;
  return steps;
}

/// Weights, a loop that reads none, weights again: as a walk has them.
struct List {
  std::vector<std::byte> first = std::vector<std::byte>(8 * step_bytes),
                         second = std::vector<std::byte>(4 * step_bytes);
  ReadAhead last{second.data(), 4 * step_bytes}, between{nullptr, 0, &last}, begin{first.data(), 8 * step_bytes, &last};
};

TEST(AheadReader, AsksForItsPartOfTheLoopThatComesAndThenOfTheNext) {
  const List list;
  for (const int thread : {0, 1}) {
    AheadReader reader(thread, 2);
    EXPECT_FALSE(reader.step());
    reader.follow(&list.begin);
    EXPECT_EQ(steps_of(reader), 4);
    reader.follow(&list.begin);
    EXPECT_EQ(steps_of(reader), 0) << "what was asked for is not asked for again";
    reader.pass();
    EXPECT_EQ(steps_of(reader), 2);
    reader.pass();
    EXPECT_EQ(steps_of(reader), 0) << "another loop of the same launch changes nothing";
  }
}

TEST(AheadReader, GoesOnWhereItWasWhenTheLoopComes) {
  const List list;
  AheadReader reader(0, 1);
  reader.follow(&list.between);
  EXPECT_TRUE(reader.step());
  reader.pass();
  reader.follow(&list.last);
  EXPECT_EQ(steps_of(reader), 3);
  reader.pass();
  EXPECT_FALSE(reader.step()) << "nothing comes after the last";
}

TEST(AheadReader, LeavesRoomInTheCacheAndEndsWithoutAList) {
  std::vector<std::byte> large(4 * AheadReader::most_bytes);
  const ReadAhead one{large.data(), static_cast<std::int64_t>(large.size())};
  AheadReader reader(1, 2);
  reader.follow(&one);
  EXPECT_EQ(steps_of(reader), AheadReader::most_bytes / step_bytes);
  reader.follow(nullptr);
  EXPECT_FALSE(reader.step());
}

}  // namespace
}  // namespace cermet
