#include "kernel/cuda/gemm/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.hpp"

namespace cermet::cuda {
namespace {

constexpr HopperTile candidates[] = {{128, 256}, {128, 192}, {128, 128}, {128, 64},
                                     {64, 256},  {64, 128},  {64, 64},   {64, 32}};
/// For the few or odd columns of convolutions, beside the others where one tile is chosen for a known number of rows.
constexpr HopperTile narrow_candidates[] = {{128, 96}, {128, 32}};
/// For one number of rows: 28672 columns are 256 tiles of these, two rounds of 132 SMs with hardly any tail.
constexpr HopperTile further_candidates[] = {{64, 112}, {128, 112}};

/// The work of a launch as the SMs take it: in rounds of tiles, whose stages are 128 bytes of k.
struct Rounds {
  std::int64_t rows, tiles;     ///< rows of a group; tiles of all
  double count, stages, bytes;  ///< rounds, stages of a tile, bytes of the operands
  double busy, step, tile_end;  ///< seconds: of the tensor cores in a stage, of a stage, and after a tile's last one
};

// An SM takes its share of the L2's bandwidth, and an instruction of N columns keeps the tensor cores busy for as long
// as they need for its operations, narrow ones half as long more and 16 cycles, because they wait for their operands.
// Measured on an H200, in cycles of an SM: 3500 pass before the first wgmma and 1000 with every tile, and 8 for every
// column of 64 rows on its way out.
Rounds rounds_of(const HopperWork& work, const HopperTile& tile, std::int64_t m) {
  const gemm::HopperShape shape = hopper_shape(work, tile);
  const double sms = work.multiprocessors, cycle = work.cycle;
  Rounds r{};
  r.rows = work.offsets ? div_up(m, work.groups) : m;
  r.tiles = div_up(std::max<std::int64_t>(r.rows, 1), tile.block_m) * work.groups * div_up(work.n, tile.block_n);
  r.count = static_cast<double>(div_up(r.tiles, work.multiprocessors));
  r.stages = static_cast<double>(div_up(work.k_bytes, 128));
  // An instruction multiplies 64 rows with block_n columns, 32 bytes of k at a time.
  const double operations = 2.0 * 64 * tile.block_n * 32 / static_cast<double>(size_of(work.operand));
  const double full = operations * sms / work.operation_rate, instruction = std::max(full, 16 * cycle + full / 2);
  const double instructions = 4.0 * work.a_parts * work.b_parts * shape.consumers(),
               copy = shape.stage_bytes() * sms / work.cache_rate;
  r.busy = instructions * full;
  r.step = std::max(instructions * instruction, copy);
  r.bytes = static_cast<double>(work.k_bytes) * (static_cast<double>(work.n * work.groups * work.b_parts) +
                                                 static_cast<double>(m) * work.a_parts * work.a_share);
  r.tile_end = (1000 + 16.0 * tile.block_n * shape.consumers() / 2) * cycle;
  return r;
}

bool suits(const HopperWork& work, const HopperTile& tile) {
  return tile.block_n <= work.widest && (tile.block_n == 32 || tile.block_n < 2 * work.n) &&
         hopper_shape(work, tile).most_stages() >= 2;
}

}  // namespace

gemm::HopperShape hopper_shape(const HopperWork& work, const HopperTile& tile) {
  return {tile.block_m,   tile.block_n,      work.a_parts,   work.b_parts,
          work.out_bytes, work.vector_bytes, work.ungrouped, work.second_bytes};
}

int hopper_stages(const HopperWork& work, const HopperTile& tile) {
  return tile.stages > 0 ? tile.stages : std::min(16, hopper_shape(work, tile).most_stages());
}

void HopperWork::set_limits(const DeviceLimits& limits) {
  cycle = 1 / limits.clock_hz;
  read_rate = limits.read_bytes_per_second;
  cache_rate = limits.cache_bytes_per_second;
  operation_rate = limits.operations_per_second(operand);
}

double hopper_seconds(const HopperWork& work, const HopperTile& tile, std::int64_t m) {
  const Rounds r = rounds_of(work, tile, m);
  return 3500 * work.cycle + std::max(r.count * (r.stages * r.step + r.tile_end), r.bytes / work.read_rate);
}

// What 96 products and 4 routers took on an H200 (docs/notes/selection.md). SMs get more of the L2 where few ask, up to
// 93 bytes a cycle, and all together 0.91 of the memory's bandwidth where at least half of them read. Tensor cores that
// are busy for more than 0.77 of the device's time lower its clock. Rows that a bulk copy fills with zeros cost 3.4
// cycles each where all SMs copy them, beside everything else; those of a group are the next group's rows.
double hopper_launch_seconds(const HopperWork& work, const HopperTile& tile, std::int64_t m) {
  constexpr double assumed = 45;  // bytes a cycle from the L2 in the limits that hopper_seconds() was fitted with
  const Rounds all = rounds_of(work, tile, m);
  const double busy = static_cast<double>(all.tiles) / (all.count * work.multiprocessors);
  HopperWork alone = work;
  alone.cache_rate *= std::min(93.0, 50 / std::sqrt(busy)) / assumed;
  const Rounds r = rounds_of(alone, tile, m);
  const double clock = std::max(1.0, busy * r.busy / r.step / 0.77);
  const double computing = r.count * (r.stages * r.step * clock + r.tile_end);
  const double reading = r.bytes / (0.91 * std::max(0.5, busy) * work.read_rate) + r.tile_end;
  const std::int64_t row_tiles = div_up(std::max<std::int64_t>(r.rows, 1), tile.block_m);
  const double missing =
      work.ungrouped ? static_cast<double>(row_tiles * tile.block_m - r.rows) / static_cast<double>(row_tiles) : 0;
  const double zeros = r.count * r.stages * 3.4 * missing * std::max(0.0, 2 * busy - 1);
  return (3500 + zeros) * work.cycle + std::max(computing, reading);
}

std::vector<HopperTile> possible_hopper_tiles(const HopperWork& work) {
  std::vector<HopperTile> possible;
  for (const HopperTile& tile : candidates)
    if (suits(work, tile)) possible.push_back(tile);
  return possible;
}

std::vector<HopperTile> further_hopper_tiles(const HopperWork& work, std::int64_t m) {
  std::vector<HopperTile> further;
  for (const HopperTile& tile : further_candidates)
    if (suits(work, tile) && (tile.block_m > 64 || m <= 64)) further.push_back(tile);
  return further;
}

HopperTile best_hopper_tile(const HopperWork& work, std::int64_t m) {
  std::vector<HopperTile> possible = possible_hopper_tiles(work);
  for (const HopperTile& tile : narrow_candidates)
    if (suits(work, tile)) possible.push_back(tile);
  return *std::ranges::min_element(possible, {},
                                   [&](const HopperTile& tile) { return hopper_launch_seconds(work, tile, m); });
}

std::vector<HopperTile> choose_hopper_tiles(const HopperWork& work, std::int64_t most) {
  // Groups of few rows read the next groups' with theirs: 16 groups of 2 rows, 2048 x 2048, took an H200 43 us in tiles
  // of 128 x 256 and 35 in 64 x 256.
  constexpr std::int64_t few_rows_of_group = 8;
  std::vector<HopperTile> possible = possible_hopper_tiles(work);
  if (work.offsets && div_up(most, work.groups) <= few_rows_of_group) {
    std::erase_if(possible, [](const HopperTile& tile) { return tile.block_m > 64; });
    // Of 64 groups with 8 rows, two weights of 768 x 2048 in int8, it took 53.0 us in tiles of 2 x 128 columns and 51.8
    // of 2 x 64; of 128 groups 99.7 and 99.6.
    if (work.b_parts == 2) std::erase_if(possible, [](const HopperTile& tile) { return tile.block_n > 64; });
  }
  std::vector<HopperTile> chosen;
  std::vector<std::int64_t> counts;
  for (std::int64_t m = 32; m < most; m *= 2) counts.push_back(m);
  counts.push_back(most);
  const auto best = [&](const std::vector<HopperTile>& list, std::int64_t m) {
    double least = std::numeric_limits<double>::infinity();
    for (const HopperTile& tile : list) least = std::min(least, hopper_seconds(work, tile, m));
    return least;
  };
  // The one that loses least in the worst case first, then those that reduce it most.
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
