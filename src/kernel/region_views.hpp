// Reshapes within a region that only add dimensions of 1 or take them away: what is before one is seen with other
// dimensions, and nothing is done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// Dimensions as others see them: of each, which one it is; -1: one of 1 that is not there.
using SeenAxes = std::vector<int>;

/// How the dimensions of a region's values are seen behind all such reshapes, which is how its results are.
struct RegionViews {
  std::vector<SeenAxes> nodes;        ///< by node: of its result; empty where it is seen as it is
  std::vector<SeenAxes> operands;     ///< by operand, likewise
  std::optional<std::string> reason;  ///< why there are none

  explicit RegionViews(const Region& region);
};

/// Dimensions as they are seen; those of what broadcasts to a value of `rank` dimensions that is seen so.
Dims seen(const Dims& dims, const SeenAxes& axes, std::size_t rank);
TensorView seen(const TensorView& view, const SeenAxes& axes);

}  // namespace cermet
