// The GEMM of few rows on Hopper (stream.cuh) as host and device see it: its configuration, parameters and shared
// memory.
#pragma once

#include "kernel/cuda/device/stream_ring.hpp"
#include "kernel/cuda/device/tensor_map.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/device/tile/rotation.hpp"

namespace cermet::gemm {

/// y[m, n] = epilogue(sum over k of x[m, k] * w[n, k]), m at most the tokens of the configuration.
struct StreamParams {
  TensorMapBytes w, w_up;  ///< tiles of [rows, 128 bytes], 128-byte swizzle
  TensorMapBytes x;        ///< tiles of [m, 128 bytes], 128-byte swizzle
  void *y, *second;  ///< rows start at multiples of 16 bytes and end at one; the second result, where there is one
  int64_t y_stride, second_stride;  ///< elements
  int32_t m;
  epilogue::Operand extra[epilogue::most_extras];
};

/// With rope_and_cache after the product: y are the rotated queries [m, heads, head size].
using StreamRotatedParams = rotation::WithOperands<StreamParams>;

/// What a block has: consumer warpgroups, one for each 64 rows of the weight, in one or two sets that take stages in
/// turn; then a producer warp of weights, and one of tokens. A warpgroup multiplies 64 rows even where fewer were
/// loaded: what it makes of the others is not stored, but what lies behind a tile is read.
struct StreamShape {
  int rows;     ///< of each weight that an item has; a multiple of 8, at most 256
  int tokens;   ///< rows of x that a stage has room for
  int weights;  ///< 1 or 2
  int slices;   ///< of 128 bytes of k in a stage
  int sets;     ///< of consumers
  int stages;   ///< a multiple of the sets, so that a set meets the same stages always, and more than them, because a
                ///< set may hold one and wait for another
  bool pairs = false;  ///< an item's rows are the first columns of some pairs, then their second ones

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("rows", rows), visit("tokens", tokens), visit("weights", weights), visit("slices", slices);
    visit("sets", sets), visit("stages", stages), visit("pairs", pairs);
  }

  static constexpr int slice = 128;
  static constexpr int shared_limit = 227 * 1024;

  CERMET_HOST_DEVICE constexpr int groups() const { return (rows + 63) / 64; }
  CERMET_HOST_DEVICE constexpr int consumers() const { return groups() * sets; }
  CERMET_HOST_DEVICE constexpr int threads() const { return 128 * consumers() + 64; }
  CERMET_HOST_DEVICE constexpr int slice_bytes() const { return (weights * rows + tokens) * slice; }
  CERMET_HOST_DEVICE constexpr int stage_bytes() const { return slices * slice_bytes(); }
  /// Tokens whose sums meet the epilogue at a time, and float32 sums from one of them to the next: no two lanes of a
  /// warp store into the same bank.
  CERMET_HOST_DEVICE constexpr int chunk() const { return tokens < 16 ? tokens : 16; }
  CERMET_HOST_DEVICE constexpr int pitch() const { return 64 * groups() + 4; }
  CERMET_HOST_DEVICE constexpr int sums_bytes() const { return sets * weights * chunk() * pitch() * 4; }
  /// What the last warpgroup reads past the ring.
  CERMET_HOST_DEVICE constexpr int overrun() const {
    const int past = (64 * groups() - rows - tokens) * slice;
    return past > 0 ? past : 0;
  }
  CERMET_HOST_DEVICE constexpr int barriers_at() const {
    return stages * stage_bytes() + (sums_bytes() > overrun() ? sums_bytes() : overrun());
  }
  CERMET_HOST_DEVICE constexpr int shared_bytes() const { return barriers_at() + 16 * stages; }

  /// In a walk (stream_walk.cuh), whose ring of stages holds weights alone: two sets of a warpgroup each, which have
  /// tokens of the stages that they take.
  CERMET_HOST_DEVICE constexpr bool can_walk() const { return sets == stream::row_sets && groups() == 1; }
  CERMET_HOST_DEVICE constexpr int weight_stage_bytes() const { return slices * weights * rows * slice; }
  CERMET_HOST_DEVICE constexpr int token_stage_bytes() const { return slices * tokens * slice; }
  CERMET_HOST_DEVICE constexpr int walk_sums_at() const {
    return stream::row_sets * stream::row_stages * token_stage_bytes();
  }
  CERMET_HOST_DEVICE constexpr int walk_bytes() const {
    const int bytes = walk_sums_at() + sums_bytes(), past = (64 - rows) * slice;
    return bytes > past ? bytes : past;
  }
};

struct StreamConfig {
  DType x, w;
  int n, k;
  StreamShape shape;
  bool preload_w = false;  ///< no launch writes the weights: they are copied before earlier launches have ended
  bool promote =
      false;  ///< sums move to other registers after each stage, where the tensor cores sum with less than float32

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("x", x), visit("w", w), visit("n", n), visit("k", k), visit("shape", shape);
    visit("preload_w", preload_w), visit("promote", promote);
  }
};

}  // namespace cermet::gemm
