// conv with a group for each channel: vectors of channels, a few neighbouring places at a time, so that an element of x that is loaded meets all taps of its
// row. x is read where it lies; taps in the padding are skipped.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/conv/depthwise.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "kernel/cpu/conv/depthwise.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

constexpr int places = depthwise_places;
constexpr auto lane_count = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

struct Sums {
  Floats at[places];
};

HWY_INLINE void clear(Sums& sums) {
#pragma GCC unroll 8
  for (int i = 0; i < places; ++i) sums.at[i] = hn::Zero(FloatTag());
}

/// Adds one row of taps with neighbouring elements: element j of x is loaded once. `checked`: only elements [low, high) are in x.
template <int taps, int stride, bool checked>
HWY_INLINE void add_row(const DepthwiseBlock& b, const float* x, const float* weight, Sums& sums) {
  Floats w[taps];
#pragma GCC unroll 8
  for (int k = 0; k < taps; ++k) w[k] = load(weight + k * b.tap_step);
#pragma GCC unroll 32
  for (int j = 0; j < (places - 1) * stride + taps; ++j) {
    if (checked && (j < b.low || j >= b.high)) continue;
    const Floats value = load(x + j * b.pixel);
#pragma GCC unroll 8
    for (int k = 0; k < taps; ++k)
      if (j >= k && (j - k) % stride == 0 && (j - k) / stride < places) sums.at[(j - k) / stride] = hn::MulAdd(value, w[k], sums.at[(j - k) / stride]);
  }
}

/// The same for any row of taps.
HWY_INLINE void add_any_row(const DepthwiseBlock& b, const float* x, const float* weight, Sums& sums) {
  for (std::int64_t k = 0; k < b.taps; ++k) {
    const Floats w = load(weight + k * b.tap_step);
#pragma GCC unroll 8
    for (int i = 0; i < places; ++i) {
      const std::int64_t j = i * b.stride + k * b.dilation;
      if (j >= b.low && j < b.high) sums.at[i] = hn::MulAdd(load(x + j * b.pixel), w, sums.at[i]);
    }
  }
}

HWY_INLINE void store_sums(const Sums& sums, const TapStore& s, std::int64_t first, std::int64_t count) {
  const auto low = hn::Set(FloatTag(), s.low), high = hn::Set(FloatTag(), s.high);
  const Floats bias = s.bias ? load(s.bias + first) : hn::Zero(FloatTag());
#pragma GCC unroll 8
  for (int i = 0; i < places; ++i) {
    if (i >= count) return;
    Floats sum = sums.at[i];
    if (s.bias) sum = hn::Add(sum, bias);
    if (s.residual) sum = hn::Add(sum, load(s.residual + i * s.residual_step + first));
    store(clamp(sum, low, high), s.y + i * s.y_step + first);
  }
}

/// The sums of `columns` >= 16 channels, vector after vector; the last one may overlap the one before.
template <class AddRow>
HWY_INLINE void multiply(const DepthwiseBlock& b, const TapStore& to, AddRow&& add_row_of) {
  for (std::int64_t first = 0; first < b.columns; first += lane_count) {
    const std::int64_t at = std::min(first, b.columns - lane_count);
    Sums sums;
    clear(sums);
    for (std::int64_t t = b.first_plane; t < b.last_plane; ++t)
      for (std::int64_t h = b.first_row; h < b.last_row; ++h)
        add_row_of(b.x + t * b.plane_step + h * b.row_step + at, b.weight + (t * b.rows + h) * b.taps * b.tap_step + at, sums);
    store_sums(sums, to, at, b.count);
  }
}

/// Calls body(block, store) for a few places after the other.
template <class Body>
HWY_INLINE void for_places(DepthwiseBlock b, TapStore to, Body&& body) {
  for (std::int64_t left = b.count; left > 0; left -= places) {
    b.count = std::min<std::int64_t>(places, left);
    body(b, to);
    b.x += places * b.stride * b.pixel, b.low -= places * b.stride, b.high -= places * b.stride;
    to.y += places * to.y_step;
    if (to.residual) to.residual += places * to.residual_step;
  }
}

template <int taps, int stride>
void multiply_places(const DepthwiseBlock& all, const TapStore& store) {
  for_places(all, store, [](const DepthwiseBlock& b, const TapStore& to) HWY_ATTR {
    const bool inside = b.low <= 0 && b.high >= (places - 1) * stride + taps;
    if (inside) multiply(b, to, [&](const float* x, const float* w, Sums& sums) HWY_ATTR { add_row<taps, stride, false>(b, x, w, sums); });
    else multiply(b, to, [&](const float* x, const float* w, Sums& sums) HWY_ATTR { add_row<taps, stride, true>(b, x, w, sums); });
  });
}

void multiply_any(const DepthwiseBlock& all, const TapStore& store) {
  for_places(all, store, [](const DepthwiseBlock& b, const TapStore& to) HWY_ATTR {
    multiply(b, to, [&](const float* x, const float* w, Sums& sums) HWY_ATTR { add_any_row(b, x, w, sums); });
  });
}

}  // namespace

MultiplyDepthwise depthwise_product_of(std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
  if (dilation != 1 || stride > 2) return multiply_any;
  switch (taps) {
    case 3: return stride == 1 ? multiply_places<3, 1> : multiply_places<3, 2>;
    case 5: return stride == 1 ? multiply_places<5, 1> : multiply_places<5, 2>;
    case 7: return stride == 1 ? multiply_places<7, 1> : multiply_places<7, 2>;
    default: return multiply_any;
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(depthwise_product_of);

MultiplyDepthwise depthwise_product(std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
  return HWY_DYNAMIC_DISPATCH(depthwise_product_of)(taps, stride, dilation);
}

}  // namespace cermet::cpu
#endif
