// Which bytes of an operand a work item touches, as a formula of its number: a box of up to four axes.
#pragma once

#include <array>
#include <cstdint>

namespace cermet {

/// Numbers first .. end - 1; none where end is not larger.
struct ItemRange {
  std::int64_t first = 0, end = 0;
  std::int64_t count() const { return end > first ? end - first : 0; }
  friend bool operator==(const ItemRange&, const ItemRange&) = default;
};

/// What the numbers of a launch's items count: places in a grid of [outer, middle, rows, columns]. Within the two inner
/// dimensions they go in sweeps over all columns, of `sweep` rows each: 1 is row after row, all rows is column after
/// column. The last sweep may have fewer rows.
struct ItemGrid {
  static constexpr int rank = 4;
  using Place = std::array<std::int64_t, rank>;

  std::array<std::uint32_t, rank> extent{1, 1, 1, 1};
  std::uint32_t sweep = 1;

  std::int64_t items() const { return std::int64_t{extent[0]} * extent[1] * extent[2] * extent[3]; }
  Place place_of(std::int64_t item) const;
  std::int64_t item_at(const Place& place) const;
  friend bool operator==(const ItemGrid&, const ItemGrid&) = default;
};

/// An axis of a box: `extent` indices, `pitch` bytes apart. An item whose place along dimension `coordinate` of the
/// grid is c has those from floor((c * step + offset) / per) to before floor((c * step + offset + width) / per), as far
/// as they exist: tiles of `width`, with `per` = 1; windows, where `width` is more than `step`; equal shares of all
/// indices, where `step` and `width` are their number and `per` that of the items.
struct ItemAxis {
  static constexpr std::int32_t all = -1;  ///< in place of a coordinate: every item has all indices

  std::int64_t pitch = 0, extent = 1;
  std::int64_t step = 0, width = 0, offset = 0;
  std::int32_t per = 1, coordinate = all;

  ItemRange indices_of(const ItemGrid::Place& place) const;
  /// Places along the coordinate, of `places`, whose items have some of these indices.
  ItemRange places_of(const ItemRange& indices, std::int64_t places) const;
  friend bool operator==(const ItemAxis&, const ItemAxis&) = default;
};

/// The bytes of an item: `run` of them at every combination of its indices. Axes are outermost first, the indices of
/// one within a step of the one before.
struct ItemBox {
  static constexpr int most_axes = 4;

  ItemGrid grid;
  std::array<ItemAxis, most_axes> axes{};
  int rank = 0;
  std::int64_t run = 0;  ///< 0: there is no formula; any item may touch any byte

  bool is_given() const { return run > 0; }
  /// False where there are too many axes; then the box is none.
  bool append(const ItemAxis& axis);
  friend bool operator==(const ItemBox&, const ItemBox&) = default;
};

/// `items_each` neighbouring items have a tile of `bytes_each` bytes together; tiles lie one after the other in
/// `bytes`.
ItemBox tiles_of_items(std::int64_t items_each, std::int64_t bytes_each, std::int64_t bytes);

/// Calls body(first byte, end) for the bytes of an item, ascending within an axis; neighbours may come apart. None for
/// an item that the grid does not have.
template <class Body>
void for_each_run(const ItemBox& box, std::int64_t item, Body&& body) {
  if (item >= box.grid.items()) return;
  const ItemGrid::Place place = box.grid.place_of(item);
  std::array<ItemRange, ItemBox::most_axes> own;
  for (int a = 0; a < ItemBox::most_axes; ++a) {
    const auto at = static_cast<std::size_t>(a);
    own[at] = a < box.rank ? box.axes[at].indices_of(place) : ItemRange{0, 1};
  }
  // Dense indices of the last axis are one run.
  const auto last = static_cast<std::size_t>(box.rank > 0 ? box.rank - 1 : 0);
  const bool joins = box.rank > 0 && box.axes[last].pitch <= box.run;
  ItemRange inner = own[last];
  if (joins && inner.count() > 0) own[last].end = own[last].first + 1;
  for (std::int64_t i = own[0].first; i < own[0].end; ++i)
    for (std::int64_t j = own[1].first; j < own[1].end; ++j)
      for (std::int64_t k = own[2].first; k < own[2].end; ++k)
        for (std::int64_t l = own[3].first; l < own[3].end; ++l) {
          const std::int64_t first =
              i * box.axes[0].pitch + j * box.axes[1].pitch + k * box.axes[2].pitch + l * box.axes[3].pitch;
          body(first, first + box.run + (joins ? (inner.count() - 1) * box.axes[last].pitch : 0));
        }
}

}  // namespace cermet
