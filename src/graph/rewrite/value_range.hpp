// What is known of a value's elements from the operators that made it.
#pragma once

#include <limits>

#include "graph/editor.hpp"

namespace cermet {

/// Bounds of all elements that are not NaN, both included; an infinite bound says that an element may be infinite.
struct ValueRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool may_be_nan = true;

  bool is_finite() const {
    return !may_be_nan && low > -std::numeric_limits<double>::infinity() &&
           high < std::numeric_limits<double>::infinity();
  }
};

/// Never too narrow: looks a few operators back, and at the elements of small constants.
ValueRange range_of(const GraphEditor& editor, ValueId id);

}  // namespace cermet
