// What the host halves of elementwise kernels share: operands that broadcast, cut into tiles.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>

#include "base/device_limits.hpp"
#include "kernel/cuda/device/pointwise/tile.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"
#include "kernel/space.hpp"

namespace cermet::cuda {

inline constexpr int pointwise_threads = 256;
inline constexpr int tile_vectors = 2;  ///< as in device/pointwise/tile.cuh

/// Elements of a vector where the widest element has this many bytes: 16 bytes of it, but at most 8.
constexpr int tile_width(std::size_t widest) { return std::min(8, static_cast<int>(16 / widest)); }

/// The tilings for which an elementwise task is compiled, in the order of its programs.
inline constexpr std::array tilings{Tiling::simple, Tiling::general};
/// How elements lie over threads where all is aligned and there are many: vectors of each thread, and blocks that must
/// fit on an SM.
struct TileChoice {
  int vectors = tile_vectors, blocks = 3;
  bool has_more_blocks =
      false;  ///< than the kernel's own choice, for which functions may have too few registers: a tuner finds out

  /// What a configuration says, or the kernel's own choice, which differs in its blocks.
  explicit TileChoice(const Config& config, int own_blocks = 3);
};
/// The programs of an elementwise task; task(Tiling::simple) is its C++ type with that tiling.
std::vector<Program> tile_programs(const char* header, const std::function<std::string(Tiling tiling)>& task,
                                   const TileChoice& choice);
/// The kernel's own choice, then "vectors=1 blocks=3" and such.
std::vector<Config> tile_configs(int own_blocks = 3);
/// All that they may be, where a kernel has such a choice.
ConfigSpace tile_space(const std::vector<Config>& configs);
/// Modelled seconds: the bytes at the memory's rate, if as many are in flight on an SM as its latency takes.
double tile_cost(const Region& region, const TileChoice& choice, const DeviceLimits& limits);

/// Rows of `length` elements cut into work items.
struct Tiles {
  TileShape shape{};
  std::int64_t items = 0;   ///< of one launch
  std::size_t program = 0;  ///< simple or general

  Tiles() = default;
  /// aligned: every row of every operand that goes along the rows lies at a multiple of vectors.
  Tiles(const StridedRows& strided, std::int64_t length, int width, bool aligned, int vectors);

  /// What a view covers, as its items share it out, if it has the rows and, where there is one, the columns that they
  /// divide.
  ByteRange share(const TensorView& view, int width) const;
};

/// Operands whose dimensions broadcast to those of the last one, as rows and tiles. Dimensions that lie densely
/// in all are merged.
class StridedTiles {
 public:
  static constexpr std::size_t most_operands = StridedRows::most_operands;
  /// vectors: of a thread where there are many.
  StridedTiles(std::span<const TensorView* const> operands, int width, int vectors);

  std::int64_t launches() const { return strided_->launches(); }
  const Tiles& tiles() const { return tiles_; }
  TileOperand operand(std::size_t i, std::int64_t launch = 0) const {
    return {strided_->operand(i, launch), along_[i]};
  }

 private:
  std::optional<StridedRows> strided_;
  std::array<TensorView, most_operands> views_;  ///< merged
  std::size_t count_;
  int width_;
  Tiles tiles_;
  std::array<std::int64_t, most_operands> along_{};
};

}  // namespace cermet::cuda
