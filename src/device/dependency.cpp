#include "device/dependency.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cermet {
namespace {

/// Runs of an item that are compared one by one; of more, all between the first and the last count.
constexpr std::int64_t most_runs = 4096;

std::int64_t runs_of(const ItemBox& box, const ItemGrid::Place& place) {
  std::int64_t runs = 1;
  for (int a = 0; a < box.rank; ++a) {
    const ItemAxis& axis = box.axes[static_cast<std::size_t>(a)];
    const std::int64_t count = axis.indices_of(place).count();
    if (count == 0) return 0;
    if (a + 1 < box.rank || axis.pitch > box.run) runs *= count;
  }
  return runs;
}

/// Calls body(first byte, end) for the bytes of a range that an item touches.
template <class Body>
void for_each_run(const ByteRange& range, std::int64_t item, Body&& body) {
  if (!range.box.is_given()) return body(std::int64_t{0}, range.bytes);
  const std::int64_t runs = runs_of(range.box, range.box.grid.place_of(item));
  if (runs == 0) return;
  std::int64_t first = range.bytes, last = 0;
  cermet::for_each_run(range.box, item, [&](std::int64_t begin, std::int64_t end) {
    end = std::min(end, range.bytes);
    if (runs <= most_runs) body(begin, end);
    first = std::min(first, begin), last = std::max(last, end);
  });
  if (runs > most_runs) body(first, last);
}

void extend(ItemRange& range, const ItemRange& by) {
  range = range.count() == 0 ? by : ItemRange{std::min(range.first, by.first), std::max(range.end, by.end)};
}

/// Places whose items touch some of the bytes [begin, end) of a box: indices along the outermost axis where those
/// differ, else along the next.
std::array<ItemRange, ItemGrid::rank> places_at(const ItemBox& box, std::int64_t begin, std::int64_t end) {
  std::array<ItemRange, ItemGrid::rank> places;
  for (std::size_t d = 0; d < places.size(); ++d) places[d] = {0, box.grid.extent[d]};
  for (int a = 0; a < box.rank; ++a) {
    const ItemAxis& axis = box.axes[static_cast<std::size_t>(a)];
    if (axis.extent <= 1 && axis.coordinate == ItemAxis::all) continue;
    const ItemRange indices{std::min(axis.extent, begin / axis.pitch),
                            std::min(axis.extent, (end - 1) / axis.pitch + 1)};
    if (axis.coordinate != ItemAxis::all) {
      ItemRange& own = places[static_cast<std::size_t>(axis.coordinate)];
      const ItemRange found = axis.places_of(indices, box.grid.extent[static_cast<std::size_t>(axis.coordinate)]);
      own = {std::max(own.first, found.first), std::min(own.end, found.end)};
    }
    if (indices.count() != 1) break;
    begin -= indices.first * axis.pitch, end -= indices.first * axis.pitch;
  }
  return places;
}

bool touch(const ByteRange& a, const ByteRange& b) {
  return a.begin && b.begin && a.bytes > 0 && b.bytes > 0 && a.overlaps(b);
}

/// Of all pairs of ranges of launches `before` and `after` that keep them in order: the items of `before` that the item
/// waits for.
std::vector<ItemSet> sets_before(const Plan& plan, std::size_t before, std::size_t after, std::int64_t item) {
  CERMET_ASSERT(before < after && after < plan.launches().size());
  const Launch &a = plan.launches()[before], &b = plan.launches()[after];
  const std::int64_t items = std::max<std::int64_t>(1, a.items);
  std::vector<ItemSet> sets;
  const auto add = [&](std::span<const ByteRange> earlier, std::span<const ByteRange> later) {
    for (const ByteRange& e : earlier)
      for (const ByteRange& l : later)
        if (!e.early && !l.early && touch(e, l))
          if (ItemSet set = items_before(e, items, l, item); !set.is_empty()) sets.push_back(set);
  };
  add(plan.writes(a), plan.reads(b));
  add(plan.writes(a), plan.writes(b));
  add(plan.reads(a), plan.writes(b));
  return sets;
}

/// Ascending; neighbours are joined.
std::vector<ItemRange> joined(std::span<const ItemSet> sets) {
  std::vector<ItemRange> all, found;
  for (const ItemSet& set : sets) std::ranges::copy(set.ranges(), std::back_inserter(all));
  std::ranges::sort(all, {}, &ItemRange::first);
  for (const ItemRange& range : all)
    if (!found.empty() && range.first <= found.back().end) found.back().end = std::max(found.back().end, range.end);
    else found.push_back(range);
  return found;
}

}  // namespace

bool ItemSet::contains(std::int64_t item) const {
  if (item >= items) return false;
  const ItemGrid::Place place = grid.place_of(item);
  for (std::size_t d = 0; d < places.size(); ++d)
    if (place[d] < places[d].first || place[d] >= places[d].end) return false;
  return true;
}

bool ItemSet::is_empty() const {
  return std::ranges::any_of(places, [](const ItemRange& range) { return range.count() == 0; });
}

std::vector<ItemRange> ItemSet::ranges() const {
  std::vector<ItemRange> list;
  if (is_empty()) return list;
  const std::int64_t first = grid.item_at({places[0].first, places[1].first, places[2].first, places[3].first});
  const std::int64_t plane = std::int64_t{grid.extent[2]} * grid.extent[3];
  const std::int64_t end = std::min(items, ((places[0].end - 1) * grid.extent[1] + places[1].end) * plane);
  for (std::int64_t item = first / plane * plane; item < end; ++item) {
    if (!contains(item)) continue;
    if (!list.empty() && list.back().end == item) ++list.back().end;
    else list.push_back({item, item + 1});
  }
  return list;
}

ItemSet items_before(const ByteRange& earlier, std::int64_t items, const ByteRange& later, std::int64_t item) {
  ItemSet set;
  set.items = items;
  if (earlier.box.is_given()) set.grid = earlier.box.grid;
  else set.grid.extent[3] = static_cast<std::uint32_t>(items);
  const std::int64_t apart = later.begin - earlier.begin;
  for_each_run(later, item, [&](std::int64_t begin, std::int64_t end) {
    begin = std::max<std::int64_t>(0, begin + apart), end = std::min(earlier.bytes, end + apart);
    if (begin >= end) return;
    const auto places = places_at(earlier.box.is_given() ? earlier.box : ItemBox{.grid = set.grid}, begin, end);
    if (std::ranges::any_of(places, [](const ItemRange& range) { return range.count() == 0; })) return;
    for (std::size_t d = 0; d < places.size(); ++d) extend(set.places[d], places[d]);
  });
  return set;
}

std::vector<ItemRange> items_before(const Plan& plan, std::size_t before, std::size_t after, std::int64_t item) {
  return joined(sets_before(plan, before, after, item));
}

std::int64_t ItemDependency::may_start(std::int64_t ended) const {
  return std::ranges::upper_bound(last_needed, ended) - last_needed.begin();
}

const char* name_of(WaitsFor what) {
  switch (what) {
    case WaitsFor::nothing: return "nothing";
    case WaitsFor::all: return "all";
    case WaitsFor::rows: return "rows";
    case WaitsFor::tiles: return "tiles";
  }
  return "";
}

ItemDependency item_dependency(const Plan& plan, std::size_t before, std::size_t after) {
  ItemDependency found;
  found.items = std::max<std::int64_t>(1, plan.launches()[after].items);
  found.earlier = std::max<std::int64_t>(1, plan.launches()[before].items);
  found.least = found.earlier;
  bool all_columns = true;
  for (std::int64_t item = 0; item < found.items; ++item) {
    const std::vector<ItemSet> sets = sets_before(plan, before, after, item);
    const std::vector<ItemRange> ranges = joined(sets);
    std::int64_t needed = 0;
    for (const ItemRange& range : ranges) needed += range.count();
    found.least = std::min(found.least, needed);
    found.most = std::max(found.most, needed);
    found.last_needed.push_back(ranges.empty() ? 0 : ranges.back().end);
    all_columns = all_columns && std::ranges::all_of(sets, &ItemSet::has_all_columns);
    if (item == found.items / 2) found.middle = ranges;
  }
  std::ranges::sort(found.last_needed);
  if (found.most > 0)
    found.what = found.least == found.earlier ? WaitsFor::all : all_columns ? WaitsFor::rows : WaitsFor::tiles;
  return found;
}

}  // namespace cermet
