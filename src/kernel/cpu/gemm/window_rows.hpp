// The windows of a convolution as the rows of a product, channels last: [tap][channel] of x, zeros in the padding.
// Where they are single pixels, times a factor for each channel: the gate of a squeeze-and-excitation block.
#pragma once

#include <optional>

#include "kernel/kernel.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {

/// Known when the kernel is bound.
struct WindowPlan {
  ConvGeometry geometry;
  std::size_t x;                       ///< operand of the region
  std::optional<std::size_t> factors;  ///< likewise

  /// Of a region that is not declined.
  explicit WindowPlan(const Region& region);
  /// Why what comes before the convolution, if anything, is not a product with such factors.
  static Decline declines(const Region& region);
};

/// The same with the operands of a launch.
class WindowRows {
 public:
  WindowRows(const WindowPlan& plan, const LaunchArgs& args, const TensorView& y);

  std::int64_t channels() const { return x_.channels(); }
  std::int64_t taps() const { return g_.taps(); }
  struct Window {
    std::int64_t sample;
    std::int64_t corner[3];  ///< place of the first tap, which may be in the padding
  };
  Window window(std::int64_t row) const;
  /// The channels of one tap; null in the padding.
  const float* at(const Window& window, std::int64_t tap) const;
  /// Those that all windows of a sample are multiplied with; null where there are none.
  const float* factors(const Window& window) const {
    return factors_ ? factors_ + window.sample * factor_step_ : nullptr;
  }

 private:
  const ConvGeometry& g_;
  ConvTensor x_, y_;
  const float *data_, *factors_ = nullptr;
  std::int64_t factor_step_ = 0;
};

}  // namespace cermet::cpu
