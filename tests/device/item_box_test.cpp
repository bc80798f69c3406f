// Boxes of items, and the grids that their numbers count.
#include "device/item_box.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace cermet {
namespace {

using Place = ItemGrid::Place;

TEST(ItemGrid, GoesRowAfterRow) {
  const ItemGrid grid{{1, 1, 3, 4}};
  EXPECT_EQ(grid.items(), 12);
  EXPECT_EQ(grid.place_of(0), (Place{0, 0, 0, 0}));
  EXPECT_EQ(grid.place_of(5), (Place{0, 0, 1, 1}));
}

TEST(ItemGrid, GoesInSweepsOfRows) {
  const ItemGrid grid{{1, 2, 5, 3}, 2};  // two planes; sweeps of two rows, two and one
  EXPECT_EQ(grid.place_of(0), (Place{0, 0, 0, 0}));
  EXPECT_EQ(grid.place_of(1), (Place{0, 0, 1, 0}));
  EXPECT_EQ(grid.place_of(2), (Place{0, 0, 0, 1}));
  EXPECT_EQ(grid.place_of(6), (Place{0, 0, 2, 0}));
  EXPECT_EQ(grid.place_of(13), (Place{0, 0, 4, 1})) << "the last sweep has one row";
  EXPECT_EQ(grid.place_of(15), (Place{0, 1, 0, 0}));
}

TEST(ItemGrid, NumbersAndPlacesAgree) {
  for (const std::uint32_t sweep : {1u, 2u, 3u, 7u}) {
    const ItemGrid grid{{2, 3, 7, 5}, sweep};
    std::set<Place> places;
    for (std::int64_t item = 0; item < grid.items(); ++item) {
      EXPECT_EQ(grid.item_at(grid.place_of(item)), item);
      places.insert(grid.place_of(item));
    }
    EXPECT_EQ(places.size(), 2u * 3 * 7 * 5);
  }
}

/// Tiles, windows, equal shares, and what several items have together.
std::vector<ItemAxis> axes() {
  return {{.pitch = 1, .extent = 10, .step = 4, .width = 4, .coordinate = 0},
          {.pitch = 1, .extent = 20, .step = 4, .width = 7, .offset = -1, .coordinate = 0},
          {.pitch = 1, .extent = 11, .step = 11, .width = 11, .per = 6, .coordinate = 0},
          {.pitch = 1, .extent = 3, .step = 5, .width = 5 + 7 - 1, .per = 7, .coordinate = 0},
          {.pitch = 1, .extent = 4, .step = 1, .width = 2, .per = 2, .coordinate = 0},
          {.pitch = 1, .extent = 9, .step = 6, .width = 17, .offset = -8, .per = 3, .coordinate = 0}};
}

TEST(ItemAxis, PlacesOfIndicesAreThoseWhoseIndicesMeetThem) {
  constexpr std::int64_t places = 6;
  for (const ItemAxis& axis : axes())
    for (std::int64_t first = 0; first < axis.extent; ++first)
      for (std::int64_t end = first + 1; end <= axis.extent; ++end) {
        const ItemRange found = axis.places_of({first, end}, places);
        for (std::int64_t p = 0; p < places; ++p) {
          const ItemRange own = axis.indices_of({p, 0, 0, 0});
          const bool meets = own.count() > 0 && own.first < end && first < own.end,
                     holds = p >= found.first && p < found.end;
          if (own.count() == 0) continue;
          EXPECT_EQ(holds, meets) << "place " << p << ", indices " << first << " .. " << end << " of an axis of "
                                  << axis.extent;
        }
      }
}

TEST(ItemAxis, SharesAreDisjointAndCoverAll) {
  const ItemAxis axis{.pitch = 1, .extent = 11, .step = 11, .width = 11, .per = 4, .coordinate = 1};
  std::int64_t next = 0;
  for (std::int64_t p = 0; p < 4; ++p) {
    const ItemRange own = axis.indices_of({0, p, 0, 0});
    EXPECT_EQ(own.first, next);
    next = own.end;
  }
  EXPECT_EQ(next, 11);
}

TEST(ItemBox, RunsOfAnItem) {
  // Rows of 100 bytes; items have two rows and 8 of 24 dense bytes, by columns.
  ItemBox box{.grid = {{1, 1, 3, 3}}, .axes = {}, .rank = 0, .run = 1};
  ASSERT_TRUE(box.append({.pitch = 100, .extent = 5, .step = 2, .width = 2, .coordinate = 2}));
  ASSERT_TRUE(box.append({.pitch = 1, .extent = 24, .step = 8, .width = 8, .coordinate = 3}));
  const auto runs = [&](std::int64_t item) {
    std::vector<ItemRange> list;
    for_each_run(box, item, [&](std::int64_t first, std::int64_t end) { list.push_back({first, end}); });
    return list;
  };
  EXPECT_EQ(runs(0), (std::vector<ItemRange>{{0, 8}, {100, 108}}));
  EXPECT_EQ(runs(5), (std::vector<ItemRange>{{216, 224}, {316, 324}}));
  EXPECT_EQ(runs(8), (std::vector<ItemRange>{{416, 424}})) << "there is no sixth row";
  while (box.rank < ItemBox::most_axes) ASSERT_TRUE(box.append({}));
  EXPECT_FALSE(box.append({}));
  EXPECT_FALSE(box.is_given()) << "more axes than it has room for";
}

}  // namespace
}  // namespace cermet
