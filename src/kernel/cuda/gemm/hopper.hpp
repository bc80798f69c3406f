// Host half of the Hopper GEMM (device/gemm/hopper.cuh) for every operator of linear algebra.
#pragma once

#include "device/cuda/window_map.hpp"
#include "kernel/cuda/device/gemm/hopper.hpp"
#include "kernel/cuda/gemm/general.hpp"
#include "kernel/cuda/gemm/tiles.hpp"

namespace cermet::cuda {

/// Rows of x that are not those of a matrix.
struct HopperRows {
  gemm::HopperWindows windows = {};  ///< of a convolution, launched by launch_windows()
  double share = 1;                  ///< x has this part of the windows' elements
  bool gated = false;                ///< a gate multiplies the rows of x; launched by launch_gated()
};

/// A gate of the rows of x: one for each column, alike for `rows` rows, `sample` elements from one to the next.
struct HopperGateRows {
  ByteRange memory;
  std::int64_t sample, rows;
};

/// Windows of an image, which stand for the rows of x: a sample has `rows` lines of `columns` of them.
struct HopperWindows {
  WindowMapShape map;
  ByteRange image;
  std::int64_t rows, columns;
};

/// Tiles that are compiled where no configuration says which.
enum class HopperTiles : std::uint8_t {
  few,          ///< for any number of rows up to the maximum
  one,          ///< the best for the number of rows, where that is known beforehand
  one_of_many,  ///< the same from 4096 rows on, where it was measured; few below
};

class HopperProduct {
 public:
  static Decline declines(const Region& region);
  /// A region that it does not decline. Without a configuration, launches take the best of a few tiles for their number
  /// of rows; with one, its tile.
  explicit HopperProduct(const Region& region, const Config& config = {}, const HopperRows& rows = {},
                         HopperTiles tiles = HopperTiles::few);
  /// Tiles and stages of the ring; the first has none and leaves the choice to launches.
  std::vector<Config> configs() const;
  /// Those and more: tiles of other widths, every number of stages, and how many tiles of rows share a sweep over the
  /// columns.
  ConfigSpace space() const;
  /// Modelled seconds at the symbols' maximum.
  double seconds(const DeviceLimits& limits) const;
  /// Programs of the tiles; the one that splits a float32 operand, where there is one; those of the general GEMM.
  std::vector<Program> programs() const;
  std::int64_t workspace() const { return workspace_bytes_; }
  void launch(const LaunchArgs& args) const;
  /// Whether launches make the results of unweighted rows, too, where addresses and strides suit bulk copies; and
  /// whether this one does.
  bool makes_unweighted_rows() const { return config_.unweighted; }
  bool makes_unweighted_rows(const LaunchArgs& args) const;
  /// The programs of the tiles alone, and a launch of them whose x is these windows: its view stands for the matrix
  /// that they would be. False where addresses and strides do not suit bulk copies; then nothing was launched.
  std::vector<Program> tile_programs() const;
  bool launch_gated(const LaunchArgs& args, const HopperGateRows& gate) const;
  bool launch_windows(const LaunchArgs& args, const HopperWindows& windows) const;

 private:
  /// Operands and strides of a launch that suit bulk copies; nothing where they do not.
  struct View;
  std::optional<View> view_of(const LaunchArgs& args) const;
  void run_tiles(const LaunchArgs& args, const View& view, const HopperWindows* windows,
                 const HopperGateRows* gate = nullptr) const;
  bool fits(const LaunchArgs& args, const View& view) const;
  void set_maps(const LaunchArgs& args, const View& view, const HopperTile& tile, gemm::HopperParams& p) const;
  void set_windows(const LaunchArgs& args, const HopperWindows& windows, const HopperTile& tile,
                   gemm::HopperParams& p) const;
  void set_config(const Region& region, const HopperRows& rows);
  void set_work(const Region& region, const HopperRows& rows);
  Program program(const HopperTile& tile) const;
  /// Whether a block loads its first weights before earlier launches have ended. It pays where blocks have a tile each,
  /// and where products read weights for most of their time; others lose up to 5 % (docs/notes/gemm-cuda.md).
  bool preloads(const HopperTile& tile) const;
  /// Whether most groups have few rows of a tile, so that launches copy those rows alone.
  bool has_few_rows(const HopperTile& tile) const;
  /// Whether a launch takes tiles of such groups by their number, so that blocks know their first weight early.
  bool takes_by_number(const View& view, const HopperTile& tile) const;
  std::int64_t tiles_of_groups(const View& view, const HopperTile& tile) const;
  /// Of the workspace: x in three parts.
  ByteRange parts(const LaunchArgs& args, const View& view) const;
  static HopperTile choose(const std::vector<HopperTile>& tiles, const HopperWork& work, std::int64_t m);
  gemm::HopperParams params(const LaunchArgs& args, const View& view, const HopperTile& tile) const;
  const TensorView& x(const LaunchArgs& args) const { return *product_.given(args, product_.at.x); }
  const TensorView& w(const LaunchArgs& args) const { return *product_.given(args, product_.at.w); }

  bool is_split() const { return config_.a_parts > 1; }  ///< a float32 x is a sum of bfloat16 matrices

  OpKind op_;
  Product product_;
  gemm::HopperConfig config_{};  ///< of all tiles; program() adds what differs from tile to tile
  DType x_type_;
  std::int64_t n_, k_, workspace_bytes_ = 0;
  bool constant_b_ = false, known_rows_ = false;
  HopperWork work_;
  std::int64_t most_rows_ = 0, most_batches_ = 1;
  std::vector<HopperTile> tiles_;
  GeneralProduct general_;
};

}  // namespace cermet::cuda
