// Tiles of attention of many queries with mma.sync: which a problem can have, which it gets, and what they cost.
#pragma once

#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/device/attention/prefill_config.hpp"

namespace cermet::cuda {

/// Why no tile takes a problem.
Decline prefill_tile_declines(const Problem& problem);

/// What is compiled for a problem: the tiles of a configuration, or the kernel's own choice of them.
struct PrefillShape {
  AttentionProblem a;
  attention::PrefillConfig tile{};  ///< keys: 0 where nothing fits
  int blocks = 1;                   ///< of an SM that registers must leave room for

  /// `values_in_keys`: for launches whose values are the first columns of the keys.
  explicit PrefillShape(const Problem& p, const Config& config = {}, bool values_in_keys = false);
  std::int64_t rows() const { return tile.rows(); }
};

/// Those that fit: for any launch, and for launches whose values are in their keys, where copying keys twice costs
/// most. Other launches fall back on the general task.
std::vector<PrefillShape> prefill_shapes(const Problem& problem, const Config& config = {});

std::vector<Config> prefill_tile_configs(const Problem& problem);
ConfigSpace prefill_tile_space(const Problem& problem);
double prefill_tile_cost(const Problem& problem, const Config& config, const DeviceLimits& limits);

}  // namespace cermet::cuda
