// Dependencies between the items of launches.
#include "device/dependency.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cermet {
namespace {

const std::array<std::byte, 4096> memory{};
struct Tiles {
  std::int64_t items_each = 0, bytes_each = 0;
};
ByteRange range(std::int64_t from, std::int64_t bytes, Tiles tiles = {}) {
  return {memory.data() + from, bytes,
          tiles.items_each > 0 ? tiles_of_items(tiles.items_each, tiles.bytes_each, bytes) : ItemBox{}};
}
/// The only range of items, or none.
ItemRange items_between(const ByteRange& earlier, std::int64_t items, const ByteRange& later, std::int64_t item) {
  const std::vector<ItemRange> found = items_before(earlier, items, later, item).ranges();
  EXPECT_LE(found.size(), 1u);
  return found.empty() ? ItemRange{} : found.front();
}

TEST(Dependency, WithoutTilesEverythingDependsOnEverything) {
  EXPECT_EQ(items_between(range(0, 1000), 7, range(999, 5), 3), (ItemRange{0, 7}));
  EXPECT_EQ(items_between(range(0, 1000), 7, range(1000, 5), 3), ItemRange{}) << "they touch no common byte";
}

TEST(Dependency, ARowNeedsTheItemsThatWriteIt) {
  // Rows of 100 bytes: the earlier launch has two items for four rows, the later one an item for each row.
  const ByteRange written = range(0, 1000, {2, 400}), read = range(0, 1000, {1, 100});
  EXPECT_EQ(items_between(written, 6, read, 0), (ItemRange{0, 2}));
  EXPECT_EQ(items_between(written, 6, read, 3), (ItemRange{0, 2}));
  EXPECT_EQ(items_between(written, 6, read, 4), (ItemRange{2, 4}));
  EXPECT_EQ(items_between(written, 6, read, 9), (ItemRange{4, 6}));
  EXPECT_EQ(items_between(written, 6, read, 10), ItemRange{}) << "past the end";
  // The other way round, a tile needs all items of its rows.
  EXPECT_EQ(items_between(read, 10, written, 3), (ItemRange{4, 8}));
  EXPECT_EQ(items_between(read, 10, written, 5), (ItemRange{8, 10}));
}

TEST(Dependency, RangesNeedNotBeginTogether) {
  // The later launch reads rows 2 .. 4 of what the earlier one writes.
  const ByteRange written = range(0, 1000, {1, 100}), read = range(250, 200, {1, 100});
  EXPECT_EQ(items_between(written, 10, read, 0), (ItemRange{2, 4}));
  EXPECT_EQ(items_between(written, 10, read, 1), (ItemRange{3, 5}));
  EXPECT_EQ(items_between(range(0, 1000, {1, 100}), 10, range(250, 200), 5), (ItemRange{2, 5}));
}

/// A tile of a product whose rows are 64 bytes: two of its four columns' tiles.
ByteRange tile_range(std::int64_t from, const ItemGrid& grid, std::int64_t rows, std::int64_t bytes,
                     bool by_columns = true) {
  ItemBox box{.grid = grid, .axes = {}, .rank = 0, .run = by_columns ? 1 : 64};
  box.append({.pitch = 64, .extent = 10, .step = rows, .width = rows, .coordinate = 2});
  if (by_columns) box.append({.pitch = 1, .extent = 64, .step = bytes, .width = bytes, .coordinate = 3});
  return {memory.data() + from, 640, box};
}

TEST(Dependency, ATileNeedsAllTilesOfItsRows) {
  // Tiles of [4, 16 bytes] are written in sweeps of two rows of tiles; a product reads rows of 2.
  const ByteRange written = tile_range(0, {{1, 1, 3, 4}, 2}, 4, 16),
                  read = tile_range(0, {{1, 1, 5, 7}, 5}, 2, 0, false);
  const auto needed = [&](std::int64_t item) { return items_before(written, 12, read, item).ranges(); };
  EXPECT_EQ(needed(0), (std::vector<ItemRange>{{0, 1}, {2, 3}, {4, 5}, {6, 7}})) << "the first row of tiles";
  EXPECT_EQ(needed(1), needed(0));
  EXPECT_EQ(needed(2), (std::vector<ItemRange>{{1, 2}, {3, 4}, {5, 6}, {7, 8}}));
  EXPECT_EQ(needed(4), (std::vector<ItemRange>{{8, 12}})) << "the sweep of one row";
  EXPECT_EQ(items_before(read, 35, written, 0).ranges(),
            (std::vector<ItemRange>{{0, 2}, {5, 7}, {10, 12}, {15, 17}, {20, 22}, {25, 27}, {30, 32}}));
}

/// A plan of two launches: tiles, then rows of the same memory and a weight.
Plan two_launches(bool weight_is_early) {
  Plan plan;
  plan.want_ranges(true);
  Launch launch;
  launch.items = 12;
  plan.add_program(launch, {});
  const ByteRange written = tile_range(0, {{1, 1, 3, 4}, 2}, 4, 16);
  plan.declare({}, {&written, 1});
  launch.items = 5;
  plan.add_program(launch, {});
  ByteRange weight = range(600, 100);
  weight.early = weight_is_early;
  const ByteRange reads[] = {tile_range(0, {{1, 1, 5, 1}}, 2, 0, false), weight};
  const ByteRange result = range(2000, 500, {1, 100});
  plan.declare(reads, {&result, 1});
  return plan;
}

TEST(Dependency, OfLaunchesOfAPlan) {
  const Plan plan = two_launches(true);
  EXPECT_EQ(items_before(plan, 0, 1, 4), (std::vector<ItemRange>{{8, 12}}));
  const ItemDependency found = item_dependency(plan, 0, 1);
  EXPECT_EQ(found.items, 5);
  EXPECT_EQ(found.earlier, 12);
  EXPECT_EQ(found.least, 4);
  EXPECT_EQ(found.most, 4);
  EXPECT_EQ(found.may_start(6), 0);
  EXPECT_EQ(found.may_start(7), 2) << "rows 0 and 1 need items 0, 2, 4 and 6";
  EXPECT_EQ(found.may_start(8), 4);
  EXPECT_EQ(found.may_start(12), 5);
}

/// A range that is not early and that the other launch writes into makes every item wait for those items.
TEST(Dependency, WhatIsNotFetchedEarlyIsWaitedFor) {
  EXPECT_EQ(items_before(two_launches(false), 0, 1, 0),
            (std::vector<ItemRange>{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {9, 12}}))
      << "the weight begins in the second tile of the last row";
}

}  // namespace
}  // namespace cermet
