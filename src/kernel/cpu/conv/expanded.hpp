// A convolution as the rows of x that a depthwise one needs, some channels at a time.
#pragma once

#include <array>
#include <optional>

#include "kernel/cpu/conv/store.hpp"
#include "kernel/cpu/conv/windows.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {

/// Known when a kernel is bound: the nodes before its region's anchor. A convolution, with the transpose that puts an
/// image's channels last in front of it.
struct Expansion {
  std::size_t x = 0, weight = 0;    ///< operands of the region
  std::optional<std::size_t> bias;  ///< of the region, too
  ConvGeometry geometry;
  ConvPrologue prologue;
  SumProgram sum;
  bool by_pixels = false;  ///< single pixels, which are read where they lie
  bool by_parts = false;   ///< of them: by AMX tiles, because conv.parts takes the convolution alone

  static Decline declines(const Region& region);
  explicit Expansion(const Region& region);
  /// Floats that a thread needs to copy windows.
  std::int64_t copy_floats(const Problem& p) const {
    return by_pixels ? 0 : Windows::copy_floats(geometry, p.size(1, 1), most_tap_rows);
  }
  /// Bytes of packed pixels.
  std::int64_t packed_bytes(const Problem& p, std::int64_t pixels) const;
  /// The node of a region that is the convolution.
  static std::size_t node_of(const Region& region);
};

/// Where expanded rows go: [rows][columns][step], at the first channel.
struct ExpandedRows {
  float* at;
  std::int64_t step;
};

/// Memory for what is read of x: a copy of windows, or packed pixels, which stay there for other channels of the same
/// rows.
struct ExpansionMemory {
  std::byte* at;
  std::int64_t first_row;  ///< of packed pixels
  bool packs;              ///< whether they are not there yet
};

/// The same with the operands of a launch.
class ExpansionRun {
 public:
  /// `expanded`: what the convolution gives, which is not in memory.
  ExpansionRun(const Expansion& expansion, const LaunchArgs& args, const Shape& expanded);
  ExpansionRun(const ExpansionRun&) = delete;
  ExpansionRun& operator=(const ExpansionRun&) = delete;
  /// Computes rows [first, last) of a sample, `count` channels from `channel` on, a multiple of 32.
  void make(std::int64_t sample, std::int64_t first, std::int64_t last, std::int64_t channel, std::int64_t count,
            const ExpandedRows& to, const ExpansionMemory& memory) const;

 private:
  struct Columns {
    std::int64_t channel, count;
  };
  void make_by_parts(const float* from, std::int64_t first, std::int64_t rows, const Columns& columns,
                     const ExpandedRows& to, const ExpansionMemory& memory) const;
  void make_line(const float* from, std::int64_t step, std::int64_t places, const Columns& columns,
                 const ExpandedRows& to) const;
  void make_panel(const float* from, std::int64_t step, std::int64_t places, const Columns& columns,
                  const ExpandedRows& to) const;

  static constexpr std::size_t most_runs = 32;
  friend struct Expansion;

  const Expansion& expansion_;
  TapProducts products_;
  TensorView x_;
  ConvTensor in_;
  const float *weight_, *bias_;
  std::int64_t width_, steps_;  ///< places of a row; terms of a sum
  std::optional<Windows> windows_;
  std::array<TapRun, most_runs> runs_;
  std::int64_t run_count_ = 1;
};

}  // namespace cermet::cpu
