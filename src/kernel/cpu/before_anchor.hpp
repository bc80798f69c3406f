// What comes before a region's anchor as a region of its own, for kernels that make their operand a part at a time.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// The nodes before the anchor as a region: its first result is what the anchor reads.
struct PartBeforeAnchor {
  Region region;
  std::vector<std::optional<std::size_t>> operands;  ///< of the whole region
  std::vector<std::size_t> results;                  ///< of the whole region, after the first
};

/// Of a region whose anchor is not its first node and reads one other.
PartBeforeAnchor part_before_anchor(const Region& region);

/// The first kernel that takes a region and needs no memory of its own; null where there is none.
const Kernel* kernel_without_workspace(const Region& region);

}  // namespace cermet::cpu
