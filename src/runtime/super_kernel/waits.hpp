// Which blocks of a super-kernel wait for which, as far as a compilation says.
#pragma once

#include <span>
#include <vector>

#include "runtime/memory_plan.hpp"

namespace cermet {

/// A block of a super-kernel that waits for an earlier one of it.
struct SuperWait {
  std::size_t block = 0, before = 0;
  std::vector<ValueId> values =
      {};  ///< that the one reads and the other makes; none: it writes where the other reads or writes
};

/// What a compilation says of its blocks.
struct SuperBlocks {
  const Graph& graph;
  std::span<const FusionGroup> groups;
  std::span<const std::int32_t> views;  ///< nodes without a block, whose result is operand 0
  const MemoryPlan& memory;
  const SymbolValues& maximum;
  const std::vector<bool>& has_workspace;  ///< by block: it uses memory that all share
};

/// Of blocks [first, last]: each value that goes from one to another, and what memory that is used again adds to that.
std::vector<SuperWait> waits_of(const SuperBlocks& blocks, std::size_t first, std::size_t last);

}  // namespace cermet
