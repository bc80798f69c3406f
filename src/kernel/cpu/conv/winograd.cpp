#include "kernel/cpu/conv/winograd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/conv/winograd.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

constexpr auto lane_count = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

HWY_INLINE Floats plus_times(Floats sum, float a, Floats x) { return hn::MulAdd(hn::Set(FloatTag(), a), x, sum); }

/// Six elements of x to six points: 0, 1, -1, 2, -2 and infinity.
HWY_INLINE void to_points(const Floats (&d)[winograd_size], Floats (&v)[winograd_size]) {
  const Floats even = plus_times(d[4], -4, d[2]), odd = plus_times(d[3], -4, d[1]), near_even = hn::Sub(d[4], d[2]),
               near_odd = hn::Sub(d[3], d[1]);
  v[0] = plus_times(plus_times(d[4], -5, d[2]), 4, d[0]);
  v[1] = hn::Add(even, odd);
  v[2] = hn::Sub(even, odd);
  v[3] = plus_times(near_even, 2, near_odd);
  v[4] = plus_times(near_even, -2, near_odd);
  v[5] = plus_times(plus_times(d[5], -5, d[3]), 4, d[1]);
}

/// Sums at six points to four results.
HWY_INLINE void from_points(const Floats (&m)[winograd_size], Floats (&y)[winograd_places]) {
  const Floats near_sum = hn::Add(m[1], m[2]), near_difference = hn::Sub(m[1], m[2]), far_sum = hn::Add(m[3], m[4]),
               far_difference = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(hn::Add(m[0], near_sum), far_sum);
  y[1] = plus_times(near_difference, 2, far_difference);
  y[2] = plus_times(near_sum, 4, far_sum);
  y[3] = hn::Add(plus_times(near_difference, 8, far_difference), m[5]);
}

void transform_input(const WinogradPatch& p, std::int64_t channels, float* to, std::int64_t point_step) {
  for (std::int64_t c = 0; c < channels; c += lane_count) {
    HWY_ALIGN float half[winograd_points * hn::MaxLanes(FloatTag())];
    for (int column = 0; column < winograd_size; ++column) {
      Floats d[winograd_size], v[winograd_size];
      const bool inside = column >= p.low_column && column < p.high_column;
      for (int row = 0; row < winograd_size; ++row)
        d[row] = inside && row >= p.low_row && row < p.high_row ? load(p.x + row * p.row_step + column * p.pixel + c)
                                                                : hn::Zero(FloatTag());
      to_points(d, v);
      for (int row = 0; row < winograd_size; ++row) store(v[row], half + (row * winograd_size + column) * lane_count);
    }
    for (int row = 0; row < winograd_size; ++row) {
      Floats d[winograd_size], v[winograd_size];
      for (int column = 0; column < winograd_size; ++column)
        d[column] = load(half + (row * winograd_size + column) * lane_count);
      to_points(d, v);
      for (int column = 0; column < winograd_size; ++column)
        store(v[column], to + (row * winograd_size + column) * point_step + c);
    }
  }
}

void transform_output(const float* sums, std::int64_t point_step, float* to) {
  for (std::int64_t c = 0; c < panel_columns; c += lane_count) {
    HWY_ALIGN float half[winograd_places * winograd_size * hn::MaxLanes(FloatTag())];
    for (int column = 0; column < winograd_size; ++column) {
      Floats m[winograd_size], y[winograd_places];
      for (int row = 0; row < winograd_size; ++row)
        m[row] = load(sums + (row * winograd_size + column) * point_step + c);
      from_points(m, y);
      for (int row = 0; row < winograd_places; ++row) store(y[row], half + (row * winograd_size + column) * lane_count);
    }
    for (int row = 0; row < winograd_places; ++row) {
      Floats m[winograd_size], y[winograd_places];
      for (int column = 0; column < winograd_size; ++column)
        m[column] = load(half + (row * winograd_size + column) * lane_count);
      from_points(m, y);
      for (int column = 0; column < winograd_places; ++column)
        store(y[column], to + (row * winograd_places + column) * panel_columns + c);
    }
  }
}

}  // namespace

WinogradTransforms transforms() { return {transform_input, transform_output}; }

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(transforms);

WinogradTransforms winograd_transforms() { return HWY_DYNAMIC_DISPATCH(transforms)(); }

}  // namespace cermet::cpu
#endif
