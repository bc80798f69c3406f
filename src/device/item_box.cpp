#include "device/item_box.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace cermet {
namespace {

/// Rounds down, of negative numbers, too.
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

}  // namespace

ItemGrid::Place ItemGrid::place_of(std::int64_t item) const {
  const std::int64_t rows = extent[2], columns = extent[3], plane = rows * columns, outer = item / plane;
  const std::int64_t at = item % plane, first = at / (sweep * columns) * sweep, rest = at - first * columns,
                     size = std::min<std::int64_t>(sweep, rows - first);
  return {outer / extent[1], outer % extent[1], first + rest % size, rest / size};
}

std::int64_t ItemGrid::item_at(const Place& place) const {
  const std::int64_t rows = extent[2], columns = extent[3], first = place[2] / sweep * sweep,
                     size = std::min<std::int64_t>(sweep, rows - first);
  return (place[0] * extent[1] + place[1]) * rows * columns + first * columns + place[3] * size + (place[2] - first);
}

ItemRange ItemAxis::indices_of(const ItemGrid::Place& place) const {
  if (coordinate == all) return {0, extent};
  const std::int64_t at = place[static_cast<std::size_t>(coordinate)] * step + offset;
  return {std::clamp<std::int64_t>(floor_div(at, per), 0, extent),
          std::clamp<std::int64_t>(floor_div(at + width, per), 0, extent)};
}

ItemRange ItemAxis::places_of(const ItemRange& indices, std::int64_t places) const {
  if (indices.count() == 0) return {};
  if (coordinate == all || step == 0) return {0, places};
  // The first whose end lies behind the first index, and the last that begins before the end.
  const std::int64_t first = -floor_div(-((indices.first + 1) * per - offset - width), step),
                     last = floor_div(indices.end * per - offset - 1, step);
  return {std::clamp<std::int64_t>(first, 0, places), std::clamp<std::int64_t>(last + 1, 0, places)};
}

bool ItemBox::append(const ItemAxis& axis) {
  if (rank == most_axes) {
    *this = {};
    return false;
  }
  axes[static_cast<std::size_t>(rank++)] = axis;
  return true;
}

ItemBox tiles_of_items(std::int64_t items_each, std::int64_t bytes_each, std::int64_t bytes) {
  ItemBox box;
  box.grid.extent = {1, 1, static_cast<std::uint32_t>(div_up(bytes, bytes_each)),
                     static_cast<std::uint32_t>(items_each)};
  box.append({.pitch = 1, .extent = bytes, .step = bytes_each, .width = bytes_each, .coordinate = 2});
  box.run = 1;
  return box;
}

}  // namespace cermet
