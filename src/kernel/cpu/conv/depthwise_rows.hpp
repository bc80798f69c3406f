// Rows of places of a depthwise convolution, of some channels, with their store.
#pragma once

#include "kernel/cpu/conv/depthwise.hpp"
#include "kernel/cpu/conv/store.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {

/// Why a convolution is not one of each channel by itself, channels last, of float32.
Decline declines_depthwise(const Problem& p);

/// All of one launch; x is float32. Only rows of x that run() reads need be in memory.
struct DepthwiseRows {
  const ConvGeometry& g;
  const float* x;
  const ConvTensor in, out;
  const float* weight;
  std::int64_t width;  ///< of a row of the packed weight
  const ConvStoreRun& store;
  MultiplyDepthwise multiply;

  /// Channels [first, last) of rows [row, end) of places.
  void run(std::int64_t row, std::int64_t end, std::int64_t first, std::int64_t last) const;

 private:
  void run_rows(std::int64_t row, std::int64_t count, std::int64_t first, std::int64_t last) const;
  std::int64_t places_at_once(std::int64_t whole, std::int64_t channels) const;
  void run_sums(DepthwiseBlock b, const float* from, std::int64_t place, std::int64_t first, std::int64_t last) const;
  void run_tile(DepthwiseBlock b, const float* from, std::int64_t place, std::int64_t c, std::int64_t last) const;
};

}  // namespace cermet::cpu
