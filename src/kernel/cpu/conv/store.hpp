// How the results of a convolution are stored: by its tile program, or at once where the program is no more than bias, residual and bounds.
#pragma once

#include <optional>

#include "kernel/cpu/conv/taps.hpp"
#include "kernel/cpu/tile_program.hpp"

namespace cermet::cpu {

/// A tile program of the form clamp(sum + bias + residual), all of float32.
struct ClampProgram {
  std::optional<std::size_t> bias, residual;  ///< operands of the region
  float low, high;

  /// Nothing for a program of another form.
  static std::optional<ClampProgram> of(const TileProgram& program);
};

/// What a convolution stores, known when its kernel is bound.
struct ConvStore {
  BoundTileProgram program;
  std::optional<ClampProgram> clamp;
  std::size_t result = 0;  ///< one that is stored; all have its dimensions

  explicit ConvStore(const Region& region);
  static Decline declines(const Region& region);
};

/// The same with the operands of a launch.
class ConvStoreRun {
 public:
  ConvStoreRun(const ConvStore& store, const LaunchArgs& args);
  /// Whether store_at() may be used.
  bool clamps() const { return clamps_; }
  /// For results from (row, column) on.
  TapStore store_at(std::int64_t row, std::int64_t column) const;
  /// Stores columns [place.column, +place.columns) of a tile [rows][32] whose first column is `first_column`.
  void operator()(const float* tile, std::int64_t first_column, const TilePlace& place) const;

 private:
  TileRun run_;
  TapStore whole_{};
  bool clamps_ = false;
};

}  // namespace cermet::cpu
