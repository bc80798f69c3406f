#include "device/dependency.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace cermet {

ItemRange items_before(const ByteRange& earlier, std::int64_t items, const ByteRange& later, std::int64_t item) {
  const std::byte *first = later.begin, *end = later.begin + later.bytes;
  if (later.tiles.items_each > 0) {
    const std::int64_t tile = item / later.tiles.items_each;
    first = later.begin + std::min(later.bytes, tile * later.tiles.bytes_each);
    end = later.begin + std::min(later.bytes, (tile + 1) * later.tiles.bytes_each);
  }
  first = std::max(first, earlier.begin);
  end = std::min(end, earlier.begin + earlier.bytes);
  if (first >= end) return {};
  if (earlier.tiles.items_each == 0) return {0, items};
  const std::int64_t each = earlier.tiles.items_each, bytes = earlier.tiles.bytes_each;
  return {std::min(items, (first - earlier.begin) / bytes * each), std::min(items, div_up(end - earlier.begin, bytes) * each)};
}

}  // namespace cermet
