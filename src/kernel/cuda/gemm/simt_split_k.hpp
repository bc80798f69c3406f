// Host half of products of few rows and columns on CUDA cores (device/gemm/simt_split_k.cuh).
#pragma once

#include "kernel/cuda/device/gemm/simt_split_k.hpp"
#include "kernel/cuda/gemm/general.hpp"

namespace cermet::cuda {

/// linear of 2 to 128 float32 rows and up to 512 columns, with what follows it.
class SimtSplitKProduct {
 public:
  static Decline declines(const Region& region);
  /// A region that it does not decline. The configuration: rows and columns of a block.
  explicit SimtSplitKProduct(const Region& region, const Config& config = {});
  std::vector<Config> configs() const;
  /// Modelled seconds at the symbols' maximum.
  double seconds(const DeviceLimits& limits) const;
  /// Those for up to 2, 4, 8 .. rows, as far as they differ; those of the general GEMM, for launches that are not
  /// aligned.
  std::vector<Program> programs() const;
  std::int64_t workspace() const { return 0; }
  void launch(const LaunchArgs& args) const;

 private:
  /// The tile for up to so many rows that takes the fewest cycles.
  gemm::SimtSplitKTile best_tile(std::int64_t rows) const;
  /// Modelled, of all SMs, without what every launch takes.
  double cycles(const gemm::SimtSplitKTile& tile, std::int64_t rows) const;
  std::int64_t items(const gemm::SimtSplitKTile& tile, std::int64_t rows) const;
  Program program(const gemm::SimtSplitKTile& tile) const;

  struct Choice {
    std::int64_t rows;  ///< that it is for, at most
    gemm::SimtSplitKTile tile;
  };
  Product product_;
  DType x_, w_;
  std::int64_t n_, k_, most_rows_;
  double bytes_;  ///< that it moves
  int multiprocessors_;
  bool constant_;
  std::vector<Choice> choices_;  ///< fewest rows first
  GeneralProduct general_;
};

}  // namespace cermet::cuda
