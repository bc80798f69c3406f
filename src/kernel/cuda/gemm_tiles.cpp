#include "kernel/cuda/gemm_tiles.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/device/gemm/hopper.hpp"

namespace cermet::cuda {
namespace {

constexpr HopperTile candidates[] = {{128, 256}, {128, 192}, {128, 128}, {128, 64}, {64, 256}, {64, 128}, {64, 64}, {64, 32}};

gemm::HopperShape shape_of(const HopperWork& work, const HopperTile& tile) {
  return {tile.block_m, tile.block_n, work.a_parts, work.b_parts, work.out_bytes, work.vector_bytes, work.ungrouped};
}

}  // namespace

int hopper_stages(const HopperWork& work, const HopperTile& tile) { return std::min(16, shape_of(work, tile).most_stages()); }

// Measured on an H200: an SM takes 45 bytes a cycle from the L2 where all do, the chip 2600 from memory; an instruction
// of N columns keeps the tensor cores busy for N / 2 cycles, and narrow ones wait for their operands; 3500 cycles pass
// before the first wgmma and 3000 after the last of a tile.
double hopper_cycles(const HopperWork& work, const HopperTile& tile, std::int64_t m) {
  const gemm::HopperShape shape = shape_of(work, tile);
  const std::int64_t each = work.offsets ? div_up(m, work.groups) : m;
  const std::int64_t tiles = div_up(std::max<std::int64_t>(each, 1), tile.block_m) * work.groups * div_up(work.n, tile.block_n);
  const double rounds = static_cast<double>(div_up(tiles, work.multiprocessors)), stages = static_cast<double>(div_up(work.k_bytes, 128));
  const double instruction = std::max(tile.block_n / 2.0, 16 + tile.block_n / 4.0);
  const double tensor = 4.0 * instruction * work.a_parts * work.b_parts * shape.consumers(), copy = shape.stage_bytes() / 45.0;
  const double bytes = static_cast<double>(work.k_bytes) * (static_cast<double>(work.n * work.groups * work.b_parts) + static_cast<double>(m) * work.a_parts);
  return 3500 + std::max(rounds * (stages * std::max(tensor, copy) + 1000 + 16.0 * tile.block_n * shape.consumers() / 2), bytes / 2600);
}

std::vector<HopperTile> choose_hopper_tiles(const HopperWork& work, std::int64_t most) {
  std::vector<HopperTile> possible, chosen;
  for (const HopperTile& tile : candidates)
    if (tile.block_n <= work.widest && (tile.block_n == 32 || tile.block_n < 2 * work.n) && shape_of(work, tile).most_stages() >= 2) possible.push_back(tile);
  std::vector<std::int64_t> counts;
  for (std::int64_t m = 32; m < most; m *= 2) counts.push_back(m);
  counts.push_back(most);
  const auto best = [&](const std::vector<HopperTile>& list, std::int64_t m) {
    double least = std::numeric_limits<double>::infinity();
    for (const HopperTile& tile : list) least = std::min(least, hopper_cycles(work, tile, m));
    return least;
  };
  // The one that loses least in the worst case first, then those that mend it most.
  const auto worst = [&](const std::vector<HopperTile>& list) {
    double loss = 0;
    for (const std::int64_t m : counts) loss = std::max(loss, best(list, m) / best(possible, m));
    return loss;
  };
  while (chosen.size() < 3 && (chosen.empty() || worst(chosen) > 1.05)) {
    const HopperTile* pick = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const HopperTile& tile : possible) {
      std::vector<HopperTile> with = chosen;
      with.push_back(tile);
      if (const double loss = worst(with); loss < least) least = loss, pick = &tile;
    }
    chosen.push_back(*pick);
  }
  return chosen;
}

}  // namespace cermet::cuda
