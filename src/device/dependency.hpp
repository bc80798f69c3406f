// Which items of a launch an item of a later one depends on, from what both say about the bytes they touch.
#pragma once

#include "device/plan.hpp"

namespace cermet {

/// Items first .. end - 1 of a launch; none where they are equal.
struct ItemRange {
  std::int64_t first = 0, end = 0;
  friend bool operator==(const ItemRange&, const ItemRange&) = default;
};

/// Items of a launch of `items`, which touches `earlier`, whose bytes item `item` of a later launch touches in `later`. They must have ended before, where
/// one of the two writes. What is not known counts as touched: the answer may be too large, never too small.
ItemRange items_before(const ByteRange& earlier, std::int64_t items, const ByteRange& later, std::int64_t item);

}  // namespace cermet
