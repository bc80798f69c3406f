// Axes of several operands as tasks take them: merged on the host, with the constants of division.
#pragma once

#include <array>
#include <bit>

#include "base/error.hpp"
#include "base/tensor.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::cuda {

inline Divisor make_divisor(std::int64_t divisor) {
  // A size of 0 means that there is nothing to walk; one of 2^31 or more is divided by in 64 bits.
  if (divisor < 1 || divisor >= std::int64_t{1} << 31) return {1, 1, 0};
  const auto d = static_cast<std::uint32_t>(divisor);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(d - 1));
  const std::uint64_t multiplier = (((std::uint64_t{1} << shift) - d) << 32) / d + 1;
  return {d, static_cast<std::uint32_t>(multiplier), shift};
}

/// Collects axes, outermost first; neighbours that are one run for every operand become one axis, and axes of one
/// element vanish.
template <int N>
class AxesBuilder {
 public:
  using Strides = std::array<std::int64_t, N>;

  void append(std::int64_t size, const Strides& strides) {
    count_ *= size;
    if (size == 1) return;
    bool joins = rank_ > 0;
    for (std::size_t i = 0; joins && i < N; ++i) joins = stride_[last()][i] == size * strides[i];
    if (joins) {
      size_[last()] *= size;
      stride_[last()] = strides;
      return;
    }
    push(size, strides);
  }
  /// Appends an axis that stays one of its own.
  void append_alone(std::int64_t size, const Strides& strides) {
    count_ *= size;
    push(size, strides);
  }

  std::int64_t count() const { return count_; }
  int rank() const { return rank_; }
  std::int64_t size(int axis) const { return size_[static_cast<std::size_t>(axis)]; }
  const Strides& strides(int axis) const { return stride_[static_cast<std::size_t>(axis)]; }
  void remove(int axis) {
    count_ = size(axis) > 0 ? count_ / size(axis) : count_;
    for (auto a = static_cast<std::size_t>(axis); a + 1 < static_cast<std::size_t>(rank_); ++a) {
      size_[a] = size_[a + 1];
      stride_[a] = stride_[a + 1];
    }
    --rank_;
  }

  using Operands = std::array<bool, N>;

  /// Elements that one access may take: the operands of `words` have stride 1 along the last axis, and size and their
  /// other strides allow it; the others have stride 0 there. `limit` is a power of two.
  std::int64_t run_length(const Operands& words, std::int64_t limit) const {
    if (rank_ == 0) return 1;
    for (std::size_t i = 0; i < N; ++i)
      if (stride_[last()][i] != (words[i] ? 1 : 0)) return 1;
    std::int64_t run = limit;
    while (run > 1 && !divides(run, words)) run /= 2;
    return run;
  }

  Axes<N> make() const { return make(1, Operands{}); }
  /// With `run` elements of the last axis as one word; strides of the operands of `words` become those of words.
  Axes<N> make(std::int64_t run, const Operands& words) const {
    Axes<N> axes{};
    axes.rank = rank_ > 0 ? rank_ : 1;
    axes.count = count_ / run;
    axes.wide = axes.count >= std::int64_t{1} << 31;
    axes.size[0] = 1;
    for (std::size_t a = 0; a < static_cast<std::size_t>(rank_); ++a) {
      const bool inner = a == last();
      axes.size[a] = inner ? size_[a] / run : size_[a];
      for (std::size_t i = 0; i < N; ++i) axes.stride[i][a] = inner || !words[i] ? stride_[a][i] : stride_[a][i] / run;
    }
    for (std::size_t a = 0; a < static_cast<std::size_t>(axes.rank); ++a) axes.by[a] = make_divisor(axes.size[a]);
    return axes;
  }

 private:
  void push(std::int64_t size, const Strides& strides) {
    CERMET_ASSERT(rank_ < max_axes);
    size_[static_cast<std::size_t>(rank_)] = size;
    stride_[static_cast<std::size_t>(rank_++)] = strides;
  }
  std::size_t last() const { return static_cast<std::size_t>(rank_ - 1); }
  bool divides(std::int64_t run, const Operands& words) const {
    if (size_[last()] % run != 0) return false;
    for (std::size_t a = 0; a < last(); ++a)
      for (std::size_t i = 0; i < N; ++i)
        if (words[i] && stride_[a][i] % run != 0) return false;
    return true;
  }

  int rank_ = 0;
  std::int64_t count_ = 1;
  std::array<std::int64_t, max_axes> size_{};
  std::array<Strides, max_axes> stride_{};
};

/// Whether a word of `bytes` may be read or written there.
inline bool is_aligned(const void* address, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Axes of one operand.
inline Axes<1> axes_of(const TensorView& view) {
  AxesBuilder<1> builder;
  for (int a = 0; a < view.shape.rank(); ++a) builder.append(view.shape[a], {view.strides[a]});
  return builder.make();
}

}  // namespace cermet::cuda
