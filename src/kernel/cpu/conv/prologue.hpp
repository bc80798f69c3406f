// What comes before a convolution and is done where its windows are copied: elementwise operators before one of single
// pixels (the gate of a squeeze-and-excitation block, an activation), or the transpose that puts an image's channels
// last.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Pixels first, first + step, .. of a line of x.
struct PixelLine {
  std::int64_t sample, depth, row, first, step, count;
};

/// Known when the kernel is bound.
struct ConvPrologue {
  static constexpr std::size_t most_operands = 8;

  Launcher launch;                                   ///< none where nothing comes before the convolution
  std::vector<std::optional<std::size_t>> operands;  ///< by operand of the nodes: which of the region

  bool transposes = false;  ///< its operand has the channels in front, and there is nothing to compute

  ConvPrologue() = default;
  explicit ConvPrologue(const Region& region);
  static Decline declines(const Region& region);
  /// The operand with the channels in front as x: its last dimension is not contiguous.
  TensorView transposed(const LaunchArgs& args) const;
  /// The same in `memory`, dense, for kernels that read vectors of channels.
  TensorView transposed(const LaunchArgs& args, std::byte* memory) const;
  /// Bytes that it takes there at the symbols' maximum; 0 where nothing is transposed.
  std::int64_t transposed_bytes(const Region& region) const;
};

/// The same with the operands of a launch.
class ConvPrologueRun {
 public:
  ConvPrologueRun(const ConvPrologue& prologue, const LaunchArgs& args);
  /// What the convolution reads, as if it were in memory, dense.
  const TensorView& x() const { return x_; }
  /// Whether all pixels of a sample may be one line.
  bool merges() const { return merges_; }
  /// Computes pixels, which go to `to` in steps of `pixel_step` floats. The line's numbers count in merged axes where
  /// `merged`.
  void operator()(const PixelLine& line, bool merged, float* to, std::int64_t pixel_step) const;

 private:
  const ConvPrologue& prologue_;
  std::array<TensorView, ConvPrologue::most_operands> operands_;
  TensorView x_;
  bool merges_ = true;
};

}  // namespace cermet::cpu
