// conv with a group for each channel: vectors of channels, a few neighbouring places at a time, so that an element of x
// that is loaded meets all taps of its row. x is read where it lies; taps in the padding are skipped.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/conv/depthwise.cpp"
#include <hwy/foreach_target.h>

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "kernel/cpu/conv/depthwise.hpp"
#include "kernel/cpu/gemm/accumulate-inl.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

constexpr int places = depthwise_places;
constexpr auto lane_count = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

/// A few neighbouring pixels in a row of a block, or those in two rows. By itself, because a copy of the block would
/// wait for the members that callers have just written, and these for all stores before them.
struct PixelRun {
  const float* x;
  std::int64_t low, high, count;
  float* y;
  const float* residual;
};

using Sums = Floats[places];

/// Which elements of a row of x a block reads: all but `low` at its begin and `cut` at its end, which are padding; or,
/// where `checked`, those that it says.
struct Edges {
  int low = 0, cut = 0;
  bool checked = false;
};

template <int taps, int stride>
constexpr int row_elements = (places - 1) * stride + taps;

HWY_INLINE void clear(Sums& sums) {
  sums[0] = sums[1] = sums[2] = sums[3] = sums[4] = sums[5] = sums[6] = hn::Zero(FloatTag());
}
static_assert(places == 7);

/// What the elements of a row of x are added to: sums with the weights of one row of taps.
template <int taps>
struct TapsAndSums {
  Floats w[taps];
  Sums& sums;
};

template <int... k>
HWY_INLINE void load_taps(const DepthwiseBlock& b, const float* weight, Floats (&w)[sizeof...(k)],
                          std::integer_sequence<int, k...>) {
  ((w[k] = load(weight + k * b.tap_step)), ...);
}

/// Adds element j of a row with tap k. Loops over both are unrolled by templates, because GCC unrolls its own too late
/// to keep sums in registers.
template <int stride, int j, int k>
HWY_INLINE void add_tap(Floats x, Floats w, Sums& sums) {
  if constexpr (j >= k && (j - k) % stride == 0 && (j - k) / stride < places) accumulate(sums[(j - k) / stride], x, w);
}
template <int stride, int j, int... k>
HWY_INLINE void add_taps(Floats x, const Floats (&w)[sizeof...(k)], Sums& sums, std::integer_sequence<int, k...>) {
  (add_tap<stride, j, k>(x, w[k], sums), ...);
}

/// Adds element j of a row to results of one row, or of two: an element of x is loaded once.
template <int stride, Edges edges, int j, int taps, class... Rows>
HWY_INLINE void add_element(const DepthwiseBlock& b, const PixelRun& p, const float*& x, Rows&... rows) {
  if (!edges.checked || (j >= p.low && j < p.high)) {
    const Floats value = load(x);
    (add_taps<stride, j>(value, rows.w, rows.sums, std::make_integer_sequence<int, taps>()), ...);
  }
  x += b.pixel;
}
template <int taps, int stride, Edges edges, int... j, class... Rows>
HWY_INLINE void add_elements(const DepthwiseBlock& b, const PixelRun& p, const float* x,
                             std::integer_sequence<int, j...>, Rows&... rows) {
  x += edges.low * b.pixel;
  (add_element<stride, edges, edges.low + j, taps>(b, p, x, rows...), ...);
}

/// Adds a row of x with one row of taps.
template <int taps, int stride, Edges edges>
HWY_INLINE void add_row(const DepthwiseBlock& b, const PixelRun& p, const float* x, const float* weight, Sums& sums) {
  TapsAndSums<taps> row{{}, sums};
  load_taps(b, weight, row.w, std::make_integer_sequence<int, taps>());
  add_elements<taps, stride, edges>(
      b, p, x, std::make_integer_sequence<int, row_elements<taps, stride> - edges.low - edges.cut>(), row);
}

/// The same with two rows of taps, of results above each other.
template <int taps, int stride, Edges edges>
HWY_INLINE void add_row(const DepthwiseBlock& b, const PixelRun& p, const float* x, const float* weight, Sums& sums,
                        const float* weight_below, Sums& sums_below) {
  TapsAndSums<taps> row{{}, sums}, below{{}, sums_below};
  load_taps(b, weight, row.w, std::make_integer_sequence<int, taps>()),
      load_taps(b, weight_below, below.w, std::make_integer_sequence<int, taps>());
  add_elements<taps, stride, edges>(
      b, p, x, std::make_integer_sequence<int, row_elements<taps, stride> - edges.low - edges.cut>(), row, below);
}

/// Adds any row of taps.
HWY_INLINE void add_any_row(const DepthwiseBlock& b, std::int64_t low, std::int64_t high, const float* x,
                            const float* weight, Sums& sums) {
  for (std::int64_t k = 0; k < b.taps; ++k) {
    const Floats w = load(weight + k * b.tap_step);
#pragma GCC unroll 8
    for (int i = 0; i < places; ++i) {
      const std::int64_t j = i * b.stride + k * b.dilation;
      if (j >= low && j < high) sums[i] = hn::MulAdd(load(x + j * b.pixel), w, sums[i]);
    }
  }
}

HWY_INLINE void store_sum(Floats sum, const TapStore& s, const PixelRun& p, Floats bias, Floats low, Floats high,
                          std::int64_t first, std::int64_t place) {
  if (s.bias) sum = hn::Add(sum, bias);
  if (p.residual) sum = hn::Add(sum, load(p.residual + place * s.residual_step + first));
  store(clamp(sum, low, high), p.y + place * s.y_step + first);
}
template <int... i>
HWY_INLINE void store_sums(const Sums& sums, const TapStore& s, const PixelRun& p, std::int64_t first,
                           std::integer_sequence<int, i...>) {
  const auto low = hn::Set(FloatTag(), s.low), high = hn::Set(FloatTag(), s.high);
  const Floats bias = s.bias ? load(s.bias + first) : hn::Zero(FloatTag());
  ((i < p.count ? store_sum(sums[i], s, p, bias, low, high, first, i) : void()), ...);
}
HWY_INLINE void store_sums(const Sums& sums, const TapStore& s, const PixelRun& p, std::int64_t first) {
  store_sums(sums, s, p, first, std::make_integer_sequence<int, places>());
}

/// The place below.
HWY_INLINE PixelRun below_of(const DepthwiseBlock& b, const TapStore& to, const PixelRun& p) {
  return {p.x + b.place_row_step,
          p.low,
          p.high,
          p.count,
          p.y + b.row_places * to.y_step,
          p.residual ? p.residual + b.row_places * to.residual_step : nullptr};
}

/// The sums of one row of results, of `columns` >= 16 channels, vector after vector; the last one may overlap the one
/// before. For any row of taps where `taps` is 0.
template <int taps, int stride, Edges edges>
HWY_INLINE void multiply_one(const DepthwiseBlock& b, const TapStore& to, const PixelRun& p, std::int64_t place_row) {
  for (std::int64_t first = 0; first < b.columns; first += lane_count) {
    const std::int64_t at = std::min(first, b.columns - lane_count);
    Sums sums;
    clear(sums);
    for (std::int64_t t = b.first_plane; t < b.last_plane; ++t)
      for (std::int64_t h = b.first_row[place_row]; h < b.last_row[place_row]; ++h) {
        const float* const x = p.x + t * b.plane_step + h * b.row_step + at;
        const float* const w = b.weight + (t * b.rows + h) * b.taps * b.tap_step + at;
        if constexpr (taps == 0) add_any_row(b, p.low, p.high, x, w, sums);
        else add_row<taps, stride, edges>(b, p, x, w, sums);
      }
    store_sums(sums, to, p, at);
  }
}

/// The sums of two rows of results, which are a row of x apart: a row that both read is loaded once.
template <int taps, int stride, Edges edges>
HWY_INLINE void multiply_two(const DepthwiseBlock& b, const TapStore& to, const PixelRun& p) {
  const PixelRun below = below_of(b, to, p);
  const std::int64_t row_weights = taps * b.tap_step;
  for (std::int64_t first = 0; first < b.columns; first += lane_count) {
    const std::int64_t at = std::min(first, b.columns - lane_count);
    Sums sums, sums_below;
    clear(sums), clear(sums_below);
    for (std::int64_t t = b.first_plane; t < b.last_plane; ++t) {
      const float* const x = p.x + t * b.plane_step + at;
      const float* const w = b.weight + t * b.rows * row_weights + at;
      std::int64_t h = b.first_row[0];
      for (; h <= b.first_row[1] && h < b.last_row[0]; ++h)
        add_row<taps, stride, edges>(b, p, x + h * b.row_step, w + h * row_weights, sums);
      for (; h < b.last_row[0]; ++h)
        add_row<taps, stride, edges>(b, p, x + h * b.row_step, w + h * row_weights, sums, w + (h - 1) * row_weights,
                                     sums_below);
      for (h = std::max(h, b.first_row[1] + 1); h <= b.last_row[1]; ++h)
        add_row<taps, stride, edges>(b, p, x + h * b.row_step, w + (h - 1) * row_weights, sums_below);
    }
    store_sums(sums, to, p, at);
    store_sums(sums_below, to, below, at);
  }
}

/// Calls body(places) for a few places after the other.
template <class Body>
HWY_INLINE void for_places(const DepthwiseBlock& b, const TapStore& to, Body&& body) {
  PixelRun p{b.x, b.low, b.high, 0, to.y, to.residual};
  for (std::int64_t left = b.count; left > 0; left -= places) {
    p.count = std::min<std::int64_t>(places, left);
    body(p);
    p.x += places * b.stride * b.pixel, p.low -= places * b.stride, p.high -= places * b.stride;
    p.y += places * to.y_step;
    if (p.residual) p.residual += places * to.residual_step;
  }
}

/// Sums of two rows and their weights need the registers of AVX-512; of wider windows arithmetic bounds one row, too.
template <int taps, int stride>
constexpr bool takes_two = HWY_TARGET <= HWY_AVX3&& HWY_ARCH_X86&& taps > 0 && taps <= 5 && stride == 1;

/// A few places in all rows of a block.
template <int taps, int stride, Edges edges>
HWY_INLINE void multiply_rows(const DepthwiseBlock& b, const TapStore& to, const PixelRun& p) {
  if constexpr (takes_two<taps, stride>)
    if (b.place_rows == 2 && b.place_row_step == b.row_step) return multiply_two<taps, stride, edges>(b, to, p);
  multiply_one<taps, stride, edges>(b, to, p, 0);
  if (b.place_rows == 2) multiply_one<taps, stride, edges>(b, to, below_of(b, to, p), 1);
}

/// Blocks at the edges of an image that keeps its size have code of their own, without a comparison for each element;
/// wide windows and strides gain nothing.
template <int taps, int stride>
void multiply_places(const DepthwiseBlock& b, const TapStore& to) {
  for_places(b, to, [&](const PixelRun& p) HWY_ATTR {
    constexpr int elements = row_elements<taps, stride>;
    const bool left = p.low > 0, right = p.high < elements;
    if (!left && !right) return multiply_rows<taps, stride, Edges{}>(b, to, p);
    if constexpr (stride == 1 && taps < 7) {
      constexpr int edge = (taps - 1) / 2;
      if (p.low == edge && !right) return multiply_rows<taps, stride, Edges{edge, 0}>(b, to, p);
      if (!left && p.high == elements - edge) return multiply_rows<taps, stride, Edges{0, edge}>(b, to, p);
      if (p.low == edge && p.high == elements - edge) return multiply_rows<taps, stride, Edges{edge, edge}>(b, to, p);
    }
    multiply_rows<taps, stride, Edges{.checked = true}>(b, to, p);
  });
}

void multiply_any(const DepthwiseBlock& b, const TapStore& to) {
  for_places(b, to, [&](const PixelRun& p) HWY_ATTR { multiply_rows<0, 1, Edges{}>(b, to, p); });
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
