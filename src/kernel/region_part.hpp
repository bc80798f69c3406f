// A few nodes of a region as a region of their own, for kernels that compute several products one after the other.
#pragma once

#include <optional>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet {

struct RegionPart {
  /// An operand of the part: one of the whole region, or what a node before the part makes; neither where it is not
  /// given.
  struct Operand {
    std::optional<std::size_t> index;
    std::optional<std::size_t> maker = {};  ///< a node of the whole region
  };
  Region region;
  std::vector<Operand> operands;
};

/// Nodes [first, last), with `anchor` among them; what other nodes read of them is its results.
RegionPart part_of(const Region& whole, std::size_t first, std::size_t last, std::size_t anchor);

}  // namespace cermet
