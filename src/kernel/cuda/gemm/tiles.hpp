// Tiles of the Hopper GEMM and a model of what they cost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/device_limits.hpp"
#include "kernel/cuda/device/gemm/hopper.hpp"

namespace cermet::cuda {

struct HopperTile {
  int block_m = 128, block_n = 256;
  int stages = 0;                    ///< of the ring in shared memory; 0: as many as fit
  int raster = gemm::hopper_raster;  ///< tiles of rows that share a sweep over the columns
  friend bool operator==(const HopperTile&, const HopperTile&) = default;
};

/// What the model asks about a problem.
struct HopperWork {
  std::int64_t n = 0, k_bytes = 0;  ///< columns of the result; bytes of a row of either operand
  std::int64_t groups = 1;          ///< products, or most experts that can have rows
  int a_parts = 1, b_parts = 1, out_bytes = 2, second_bytes = 0;  ///< second_bytes: of a second result
  double a_share = 1;    ///< of the bytes of a's rows that come from memory: windows overlap
  int vector_bytes = 0;  ///< scales and biases of a column
  bool offsets = false;  ///< each group ends with its own partly filled tile
  bool ungrouped = true;
  int widest = 256;  ///< most columns of a tile that the registers hold
  int multiprocessors = 132;
  DType operand = DType::bf16;  ///< what the tensor cores multiply
  /// Of the device: seconds of a cycle; bytes and operations of a second.
  double cycle = 0, read_rate = 0, cache_rate = 0, operation_rate = 0;

  void set_limits(const DeviceLimits& limits);
};

/// Seconds that a GEMM of m rows (all groups together, where they are found by offsets) takes, by what tiles differ in:
/// what ranks tiles.
double hopper_seconds(const HopperWork& work, const HopperTile& tile, std::int64_t m);
/// The same with what slows all tiles alike: what is held against other kernels.
double hopper_launch_seconds(const HopperWork& work, const HopperTile& tile, std::int64_t m);
gemm::HopperShape hopper_shape(const HopperWork& work, const HopperTile& tile);
/// Stages of the ring in shared memory.
int hopper_stages(const HopperWork& work, const HopperTile& tile);
/// Tiles that suit the work, each with as many stages as fit; widest first.
std::vector<HopperTile> possible_hopper_tiles(const HopperWork& work);
/// Others that a known number of rows may make worth it.
std::vector<HopperTile> further_hopper_tiles(const HopperWork& work, std::int64_t m);
/// The best of them for one number of rows.
HopperTile best_hopper_tile(const HopperWork& work, std::int64_t m);
/// The fewest tiles that are near the best for every number of rows up to `most`; at most three.
std::vector<HopperTile> choose_hopper_tiles(const HopperWork& work, std::int64_t most);

}  // namespace cermet::cuda
