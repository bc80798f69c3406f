#include "kernel/cuda/gemm/tiles.hpp"

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

int hopper_stages(const HopperWork& work, const HopperTile& tile) { return tile.stages > 0 ? tile.stages : std::min(16, shape_of(work, tile).most_stages()); }

void HopperWork::set_limits(const DeviceLimits& limits) {
  cycle = 1 / limits.clock_hz;
  read_rate = limits.read_bytes_per_second;
  cache_rate = limits.cache_bytes_per_second;
  operation_rate = limits.operations_per_second(operand);
}

// An SM takes its share of the L2's bandwidth, and an instruction of N columns keeps the tensor cores busy for as long as they need for its operations,
// narrow ones half as long more and 16 cycles, because they wait for their operands. Measured on an H200, in cycles of an SM: 3500 pass before the first
// wgmma and 1000 with every tile, and 8 for every column of 64 rows on its way out.
double hopper_seconds(const HopperWork& work, const HopperTile& tile, std::int64_t m) {
  const gemm::HopperShape shape = shape_of(work, tile);
  const double sms = work.multiprocessors, cycle = work.cycle;
  const std::int64_t each = work.offsets ? div_up(m, work.groups) : m;
  const std::int64_t tiles = div_up(std::max<std::int64_t>(each, 1), tile.block_m) * work.groups * div_up(work.n, tile.block_n);
  const double rounds = static_cast<double>(div_up(tiles, work.multiprocessors)), stages = static_cast<double>(div_up(work.k_bytes, 128));
  // An instruction multiplies 64 rows with block_n columns, 32 bytes of k at a time.
  const double operations = 2.0 * 64 * tile.block_n * 32 / static_cast<double>(size_of(work.operand));
  const double full = operations * sms / work.operation_rate, instruction = std::max(full, 16 * cycle + full / 2);
  const double tensor = 4.0 * instruction * work.a_parts * work.b_parts * shape.consumers(), copy = shape.stage_bytes() * sms / work.cache_rate;
  const double bytes = static_cast<double>(work.k_bytes) * (static_cast<double>(work.n * work.groups * work.b_parts) + static_cast<double>(m) * work.a_parts);
  const double tile_end = (1000 + 16.0 * tile.block_n * shape.consumers() / 2) * cycle;
  return 3500 * cycle + std::max(rounds * (stages * std::max(tensor, copy) + tile_end), bytes / work.read_rate);
}

std::vector<HopperTile> possible_hopper_tiles(const HopperWork& work) {
  std::vector<HopperTile> possible;
  for (const HopperTile& tile : candidates)
    if (tile.block_n <= work.widest && (tile.block_n == 32 || tile.block_n < 2 * work.n) && shape_of(work, tile).most_stages() >= 2) possible.push_back(tile);
  return possible;
}

std::vector<HopperTile> choose_hopper_tiles(const HopperWork& work, std::int64_t most) {
  const std::vector<HopperTile> possible = possible_hopper_tiles(work);
  std::vector<HopperTile> chosen;
  std::vector<std::int64_t> counts;
  for (std::int64_t m = 32; m < most; m *= 2) counts.push_back(m);
  counts.push_back(most);
  const auto best = [&](const std::vector<HopperTile>& list, std::int64_t m) {
    double least = std::numeric_limits<double>::infinity();
    for (const HopperTile& tile : list) least = std::min(least, hopper_seconds(work, tile, m));
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
