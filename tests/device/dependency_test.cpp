// Dependencies between the items of launches.
#include "device/dependency.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cermet {
namespace {

const std::array<std::byte, 4096> memory{};
ByteRange range(std::int64_t from, std::int64_t bytes, ItemTiles tiles = {}) { return {memory.data() + from, bytes, tiles}; }

TEST(Dependency, WithoutTilesEverythingDependsOnEverything) {
  EXPECT_EQ(items_before(range(0, 1000), 7, range(999, 5), 3), (ItemRange{0, 7}));
  EXPECT_EQ(items_before(range(0, 1000), 7, range(1000, 5), 3), ItemRange{}) << "they touch no common byte";
}

TEST(Dependency, ARowNeedsTheItemsThatWriteIt) {
  // Rows of 100 bytes: the earlier launch has two items for four rows, the later one an item for each row.
  const ByteRange written = range(0, 1000, {2, 400}), read = range(0, 1000, {1, 100});
  EXPECT_EQ(items_before(written, 6, read, 0), (ItemRange{0, 2}));
  EXPECT_EQ(items_before(written, 6, read, 3), (ItemRange{0, 2}));
  EXPECT_EQ(items_before(written, 6, read, 4), (ItemRange{2, 4}));
  EXPECT_EQ(items_before(written, 6, read, 9), (ItemRange{4, 6}));
  EXPECT_EQ(items_before(written, 6, read, 10), ItemRange{}) << "past the end";
  // The other way round, a tile needs all items of its rows.
  EXPECT_EQ(items_before(read, 10, written, 3), (ItemRange{4, 8}));
  EXPECT_EQ(items_before(read, 10, written, 5), (ItemRange{8, 10}));
}

TEST(Dependency, RangesNeedNotBeginTogether) {
  // The later launch reads rows 2 .. 4 of what the earlier one writes.
  const ByteRange written = range(0, 1000, {1, 100}), read = range(250, 200, {1, 100});
  EXPECT_EQ(items_before(written, 10, read, 0), (ItemRange{2, 4}));
  EXPECT_EQ(items_before(written, 10, read, 1), (ItemRange{3, 5}));
  EXPECT_EQ(items_before(range(0, 1000, {1, 100}), 10, range(250, 200), 5), (ItemRange{2, 5}));
}

}  // namespace
}  // namespace cermet
