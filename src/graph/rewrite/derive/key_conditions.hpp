// Which keys a mask lets a query see, where that follows from their places: the mask as a conjunction of linear
// conditions on the indices of query and key, and of what is left.
#pragma once

#include "graph/rewrite/derive/axes.hpp"

namespace cermet {

/// constant + query * i + key * j + sign * term >= 0, of query i and key j. The term is an integer of the run, one for
/// each sequence or for all.
struct LinearCondition {
  std::int64_t constant = 0, query = 0, key = 0, sign = 0;
  std::optional<IndexedValue> term = {};
  IndexedValue from = {};  ///< the truth value that it stands for
};

struct KeyConditions {
  std::vector<LinearCondition> linear;
  std::vector<IndexedValue> others;
};

/// Of a mask whose axes are among those given.
KeyConditions key_conditions(const GraphEditor& editor, Axes& axes, const IndexedValue& mask, const AxisList& sequences,
                             const AxisList& queries, const AxisList& keys);

}  // namespace cermet
