// What the host halves of elementwise kernels share: operands that broadcast, cut into tiles.
#pragma once

#include <array>
#include <span>

#include "kernel/cuda/device/pointwise/tile.hpp"
#include "kernel/cuda/rowwise.hpp"

namespace cermet::cuda {

inline constexpr int pointwise_threads = 256;

/// Elements of a vector where the widest element has so many bytes: 16 bytes of it.
constexpr int tile_width(std::size_t widest) { return static_cast<int>(16 / widest); }

/// Operands whose dimensions broadcast to those of the last one, walked as rows and tiles. Dimensions that lie densely in all are merged.
class TileWalk {
 public:
  TileWalk(std::span<const TensorView* const> operands, int width, int threads = pointwise_threads);

  std::int64_t launches() const { return walk_->launches(); }
  std::int64_t items() const { return items_; }
  const TileShape& shape() const { return shape_; }
  TileOperand operand(std::size_t i, std::int64_t launch = 0) const { return {walk_->operand(i, launch), along_[i]}; }

 private:
  static constexpr std::size_t most_operands = 6;
  std::optional<RowWalk> walk_;
  TileShape shape_{};
  std::array<std::int64_t, most_operands> along_{};
  std::int64_t items_ = 0;
};

/// Tiles of rows of `length` elements; the caller knows whether vectors are aligned.
TileShape tile_shape(const RowWalk& walk, std::int64_t length, int width, int threads, bool aligned);
/// Work items of one launch.
std::int64_t tile_items(const TileShape& shape, int threads);

}  // namespace cermet::cuda
