// A convolution of single pixels as the rows of x that a depthwise one needs, some channels at a time.
#pragma once

#include <vector>

#include "kernel/cpu/conv/store.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {

/// Known when a kernel is bound: nodes [0, anchor) of its region.
struct Expansion {
  std::size_t x = 0, weight = 0;    ///< operands of the region
  std::optional<std::size_t> bias;  ///< of the region, too
  SumProgram sum;

  static Decline declines(const Region& region);
  explicit Expansion(const Region& region);
};

/// The same with the operands of a launch. Rows go to a buffer [rows][columns of x][32].
class ExpansionRun {
 public:
  ExpansionRun(const Expansion& expansion, const LaunchArgs& args);
  const ConvTensor& x() const { return in_; }
  /// Computes rows [first, last) of a sample, channels [channel, channel + count) of a panel.
  void make(std::int64_t sample, std::int64_t first, std::int64_t last, std::int64_t channel, std::int64_t count, float* to) const;

 private:
  void make_line(const float* from, std::int64_t pixels, std::int64_t channel, std::int64_t count, float* to) const;

  const Expansion& expansion_;
  TapProducts products_;
  const float *x_, *weight_, *bias_;
  ConvTensor in_;
};

}  // namespace cermet::cpu
