// Where two launches may compute a region sooner than the one of a kernel that takes it.
#pragma once

#include <cstddef>

namespace cermet {

/// Kernel::cut of a region of several nodes.
struct RegionCut {
  enum class Rule : unsigned char {
    none,      ///< one launch
    compare,   ///< launches for nodes [0, at) and for the rest, where they are modelled to be faster or have no model
    separate,  ///< two launches were measured to be faster: planners do not form the region, but take it where it is
               ///< asked for
  };
  Rule rule = Rule::none;
  std::size_t at = 0;

  static RegionCut compared_at(std::size_t node) { return {Rule::compare, node}; }
};

}  // namespace cermet
