// Which thread blocks of a walk take a launch's items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "op/schema/region.hpp"

namespace cermet {

/// A launch, as far as it matters who computes it.
struct DealtLaunch {
  std::uint32_t items = 0;
  double item_seconds = 0;  ///< modelled, of one item on its block, without waiting
  bool streams = false;     ///< whether its weights go through the ring that all tasks of a walk share

  /// Of a launch that has all blocks to itself.
  double seconds(std::uint32_t blocks) const { return (items + blocks - 1) / blocks * item_seconds; }
};

/// Seconds of one of a launch's items, where each SM has its share of the memory's speed; `work`: of the whole launch.
double item_seconds(const Region& region, const Cost& work, std::uint32_t items);

/// The block of each launch's item 0; item i is the i-th block's after it, around the end. `needs`: as region_needs()
/// says. Launches are dealt out in their order, each to where it ends soonest by the modelled times; of equal places to
/// the blocks with the least to do, then to the lowest. So launches that follow each other begin at block 0, and those
/// of independent branches lie side by side where they have fewer items than there are blocks.
std::vector<std::uint32_t> first_blocks(std::span<const DealtLaunch> launches,
                                        std::span<const std::vector<std::uint32_t>> needs, std::uint32_t blocks);

/// When the last block has ended launches that are dealt out so, by the modelled times; `boundary_seconds`: what a
/// launch costs each of its blocks whatever it computes.
double dealt_seconds(std::span<const DealtLaunch> launches, std::span<const std::vector<std::uint32_t>> needs,
                     std::uint32_t blocks, double boundary_seconds);

}  // namespace cermet
