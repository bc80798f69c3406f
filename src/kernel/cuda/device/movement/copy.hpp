// Parameters of the tasks that copy between strided layouts.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::copy {

inline constexpr int threads = 256;

/// A block of words; strides in words.
struct Params {
  const void* from;  ///< null: zeros are written
  void* to;
  uint32_t word_bytes;
  uint32_t per_thread;  ///< 1 to 4 words of each thread in an item of threads * per_thread words
  Axes<2> axes;         ///< strides of source and destination
};

/// The same elements in row-major order under different dimensions, neither side dense.
struct RelayoutParams {
  const void* from;
  void* to;
  uint32_t word_bytes;
  Axes<1> source, destination;  ///< of equal count
};

inline constexpr int tile_side = 32;
inline constexpr int tile_shared_bytes = tile_side * (tile_side + 1) * 8;

/// Of the task for few rows: the most of them, and positions of each in a work item.
inline constexpr int interleave_rows = 8, interleave_range = 1024;
inline constexpr int interleave_shared_bytes = interleave_rows * interleave_range * 4;

/// Planes that are transposed: `across` is dense in the source, `along` is dense in the destination.
struct TransposeParams {
  const void* from;
  void* to;
  uint32_t word_bytes;
  int64_t across, along;                ///< lengths
  int64_t along_stride, across_stride;  ///< of `along` in the source, of `across` in the destination
  int64_t tiles_across, tiles_along;
  Axes<2> outer;
};

}  // namespace cermet::copy
