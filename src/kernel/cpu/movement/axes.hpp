// Axes that several operands share, each with its own strides, and a walk over them that keeps every operand's offset.
#pragma once

#include <array>

#include "base/tensor.hpp"

namespace cermet::cpu {

/// Dimensions with the strides, in elements, of N operands; outermost first. A stride of 0 repeats, a negative one
/// walks backwards.
template <int N>
struct StridedAxes {
  Shape shape;
  std::array<Shape, N> stride;

  int rank() const { return shape.rank(); }
  void push_back(std::int64_t dim, const std::array<std::int64_t, N>& strides) {
    shape.push_back(dim);
    for (std::size_t i = 0; i < N; ++i) stride[i].push_back(strides[i]);
  }
  std::array<std::int64_t, N> strides_of(int axis) const {
    std::array<std::int64_t, N> strides;
    for (std::size_t i = 0; i < N; ++i) strides[i] = stride[i][axis];
    return strides;
  }
  /// Appends an axis, or makes the last one longer where the two are one run for every operand. Axes of one element are
  /// dropped.
  void append(std::int64_t dim, const std::array<std::int64_t, N>& strides) {
    if (dim == 1) return;
    const int last = rank() - 1;
    bool joins = last >= 0;
    for (std::size_t i = 0; joins && i < N; ++i) joins = stride[i][last] == dim * strides[i];
    if (!joins) return push_back(dim, strides);
    shape[last] *= dim;
    for (std::size_t i = 0; i < N; ++i) stride[i][last] = strides[i];
  }
};

/// Offsets of every operand while the axes are walked in row-major order.
template <int N>
class Walk {
 public:
  explicit Walk(const StridedAxes<N>& axes, std::int64_t position = 0) : axes_(&axes), at_(axes.shape) {
    if (axes.shape.elements() == 0) return;  // nothing to walk
    for (int a = axes.rank() - 1; a >= 0; --a) {
      at_[a] = position % axes.shape[a];
      position /= axes.shape[a];
      for (std::size_t i = 0; i < N; ++i) offset[i] += at_[a] * axes.stride[i][a];
    }
  }
  void next() {
    for (int a = axes_->rank() - 1; a >= 0; --a) {
      const std::int64_t dim = axes_->shape[a];
      const bool wraps = ++at_[a] == dim;
      for (std::size_t i = 0; i < N; ++i) offset[i] += axes_->stride[i][a] * (wraps ? 1 - dim : 1);
      if (!wraps) return;
      at_[a] = 0;
    }
  }
  std::array<std::int64_t, N> offset{};

 private:
  const StridedAxes<N>* axes_;
  Shape at_;
};

}  // namespace cermet::cpu
