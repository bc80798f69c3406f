// How the results of a convolution are stored: by its tile program, or from registers where the program is no more than
// bias, residual, and bounds or a function.
#pragma once

#include <optional>

#include "kernel/cpu/conv/sum_program.hpp"
#include "kernel/cpu/conv/taps.hpp"
#include "kernel/cpu/tile_program.hpp"

namespace cermet::cpu {

/// What a convolution stores, known when its kernel is bound.
struct ConvStore {
  BoundTileProgram program;
  std::optional<SumProgram> sum;
  std::size_t result = 0;  ///< one that is stored; all have its dimensions

  explicit ConvStore(const Region& region);
  /// Why the nodes after the convolution do not run in its store.
  static Decline declines_after(const Region& region);
  /// The same, and that nothing may come before it.
  static Decline declines(const Region& region);
};

/// The same with the operands of a launch.
class ConvStoreRun {
 public:
  ConvStoreRun(const ConvStore& store, const LaunchArgs& args);
  /// Whether store_at() and finish() may be used in place of a tile.
  bool takes_sums() const { return takes_sums_; }
  /// For results from (row, column) on.
  TapStore store_at(std::int64_t row, std::int64_t column) const;
  /// Whether what store_at() stored is to be finished, while it is in a cache.
  bool has_function() const { return store_.sum->function != nullptr; }
  /// Applies the function to rows of results.
  void finish(const TapStore& at, std::int64_t rows, std::int64_t columns) const {
    if (store_.sum->function) apply(at, rows, columns);
  }
  /// Stores columns [range.column, +range.columns) of a tile [rows][32] whose first column is `first_column`.
  void operator()(const float* tile, std::int64_t first_column, const TileRange& range) const;

 private:
  void apply(const TapStore& at, std::int64_t rows, std::int64_t columns) const;

  const ConvStore& store_;
  TileRun run_;
  TapStore whole_{};
  bool takes_sums_ = false;
};

}  // namespace cermet::cpu
