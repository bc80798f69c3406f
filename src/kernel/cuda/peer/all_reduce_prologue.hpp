// Regions that begin with an all_reduce of what they normalize.
#pragma once

#include <optional>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet::cuda {

/// Such a region in two parts: the all_reduce, whose operand comes from outside, and the row region, which reads the
/// sum as an operand.
struct AllReducePrologue {
  Problem sum;                             ///< of all_reduce
  Region rows;                             ///< with the sum where the region has the summand
  std::size_t operand = 0;                 ///< of the region: the summand; of the row region: the sum
  std::optional<std::size_t> result = {};  ///< of the region, where the sum leaves, too
  std::vector<std::optional<std::size_t>> results =
      {};  ///< of the region, by result: which of the row region's; nothing for the sum
};

/// Nothing where the region has no all_reduce of a rank's own operand, more than one, or one that reads what the region
/// makes.
std::optional<AllReducePrologue> all_reduce_prologue(const Region& region);

}  // namespace cermet::cuda
