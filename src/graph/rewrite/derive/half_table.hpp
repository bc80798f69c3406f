// Tables whose rows have two equal halves: cosines of angles that stand twice.
#pragma once

#include "graph/rewrite/derive/arrange.hpp"

namespace cermet {

/// How the elements of a pair stand in a row of D: i and i + D / 2, or 2 i and 2 i + 1.
enum class PairOrder : std::uint8_t { halves, neighbours };

/// Whether both elements of every pair of the last dimension are the same, whatever the operands of a run are: by the
/// elements of a constant, or by the operators that made it of something that stands twice.
bool stands_twice(const GraphEditor& editor, ValueId table, PairOrder order);

/// One element of each pair of such a table, [.., D / 2]: what is computed alike for both is computed for one.
std::optional<ValueId> one_of_each_pair(Arranger& arranger, const GraphEditor& editor, ValueId table, PairOrder order);

}  // namespace cermet
