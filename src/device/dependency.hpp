// Which items of a launch an item of a later one depends on, from what both say about the bytes they touch.
#pragma once

#include <vector>

#include "device/plan.hpp"

namespace cermet {

/// Items of a launch whose places in its grid lie in a box: what a scheduler waits for.
struct ItemSet {
  ItemGrid grid;
  std::array<ItemRange, ItemGrid::rank> places{};
  std::int64_t items = 0;  ///< of the launch, which may not fill its grid

  bool contains(std::int64_t item) const;
  bool is_empty() const;
  bool has_all_columns() const { return places[3].count() >= grid.extent[3]; }
  /// Ascending; neighbours are joined.
  std::vector<ItemRange> ranges() const;
};

/// Items of a launch of `items`, which touches `earlier`, whose bytes item `item` of a later launch touches in `later`.
/// They must have ended before, where one of the two writes. What is not known counts as touched: the answer may be too
/// large, never too small.
ItemSet items_before(const ByteRange& earlier, std::int64_t items, const ByteRange& later, std::int64_t item);

/// The items of launch `before` of a plan that must have ended before item `item` of launch `after` touches memory:
/// those that write what it reads or writes, or read what it writes. Ascending; neighbours are joined. What an item
/// fetches early (ByteRange::early) is no reason to wait: nobody writes it.
std::vector<ItemRange> items_before(const Plan& plan, std::size_t before, std::size_t after, std::int64_t item);

/// What an item waits for at most of the items of an earlier launch.
enum class WaitsFor : std::uint8_t {
  nothing,
  all,    ///< every item, of every item
  rows,   ///< rows of its grid: of a product, all tiles of some rows
  tiles,  ///< places in some columns of its grid
};
const char* name_of(WaitsFor what);

/// How finely launch `after` depends on launch `before`.
struct ItemDependency {
  WaitsFor what = WaitsFor::nothing;
  std::int64_t items = 0, earlier = 0;  ///< of `after` and of `before`
  std::int64_t least = 0, most = 0;     ///< items of `before` that an item of `after` needs
  std::vector<std::int64_t>
      last_needed;  ///< sorted: by item of `after`, items of `before` from the first to the last that it needs
  std::vector<ItemRange> middle;  ///< what the item in the middle of `after`, items / 2, needs

  /// Items of `after` that may start when the first `ended` items of `before` have ended.
  std::int64_t may_start(std::int64_t ended) const;
};
ItemDependency item_dependency(const Plan& plan, std::size_t before, std::size_t after);

}  // namespace cermet
