#include "kernel/cpu/conv/weights.hpp"

#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cpu/conv/winograd.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "op/conv.hpp"
#include "op/reference.hpp"

namespace cermet::cpu {
namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

/// A weight by output channel, input channel and tap.
class Weight {
 public:
  /// `swapped`: stored by input channel, then output channel.
  explicit Weight(const TensorView& view, bool swapped = false) : view_(view), at_(conv_tensor(view, false)) {
    if (!swapped) return;
    std::swap(at_.dims[0], at_.dims[1]);
    std::swap(at_.strides[0], at_.strides[1]);
  }
  std::int64_t outputs() const { return at_.dims[0]; }
  std::int64_t inputs() const { return at_.dims[1]; }
  std::int64_t taps() const { return at_.positions(); }
  float operator()(std::int64_t m, std::int64_t c, std::int64_t tap) const {
    const std::int64_t plane = at_.dims[3] * at_.dims[4];
    const std::int64_t offset = m * at_.strides[0] + c * at_.strides[1] + tap / plane * at_.strides[2] + tap / at_.dims[4] % at_.dims[3] * at_.strides[3] +
                                tap % at_.dims[4] * at_.strides[4];
    if (view_.dtype == DType::f32) return view_.as<const float>()[offset];
    return static_cast<float>(format::load_element(view_.data, view_.dtype, offset));
  }

 private:
  const TensorView& view_;
  ConvTensor at_;
};

/// `outputs`: the axis of output channels.
template <std::size_t outputs>
std::int64_t panels_size(const TensorType& weight) {
  std::int64_t floats = panel_columns;
  for (std::size_t axis = 0; axis < weight.dims.size(); ++axis)
    floats *= axis == outputs ? panel_count(weight.dims[axis].constant()) : weight.dims[axis].constant();
  return floats * float_bytes;
}

template <bool swapped>
void pack_panels(const TensorView& view, std::byte* destination, ThreadPool& pool) {
  const Weight weight(view, swapped);
  const std::int64_t panel_floats = weight.taps() * weight.inputs() * panel_columns;
  pool.parallel_for(panel_count(weight.outputs()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      float* to = reinterpret_cast<float*>(destination) + panel * panel_floats;
      for (std::int64_t tap = 0; tap < weight.taps(); ++tap)
        for (std::int64_t c = 0; c < weight.inputs(); ++c)
          for (std::int64_t column = 0; column < panel_columns; ++column) {
            const std::int64_t m = panel * panel_columns + column;
            *to++ = m < weight.outputs() ? weight(m, c, tap) : 0;
          }
    }
  });
}

void pack_channels(const TensorView& view, std::byte* destination, ThreadPool&) {
  const Weight weight(view);
  const std::int64_t width = round_up(weight.outputs(), panel_columns);
  auto* to = reinterpret_cast<float*>(destination);
  for (std::int64_t tap = 0; tap < weight.taps(); ++tap)
    for (std::int64_t m = 0; m < width; ++m) *to++ = m < weight.outputs() ? weight(m, 0, tap) : 0;
}

std::int64_t winograd_size_of(const TensorType& weight) {
  return panel_count(weight.dims[0].constant()) * panel_columns * weight.dims[1].constant() * winograd_points * float_bytes;
}

/// g = transform * kernel * transposed transform, for the points 0, 1, -1, 2, -2 and infinity.
std::array<double, winograd_points> transform_kernel(const Weight& weight, std::int64_t m, std::int64_t c) {
  constexpr double transform[winograd_size][winograd_taps] = {
      {1.0 / 4, 0, 0}, {-1.0 / 6, -1.0 / 6, -1.0 / 6}, {-1.0 / 6, 1.0 / 6, -1.0 / 6}, {1.0 / 24, 1.0 / 12, 1.0 / 6}, {1.0 / 24, -1.0 / 12, 1.0 / 6}, {0, 0, 1}};
  std::array<double, winograd_points> points{};
  for (std::size_t p = 0; p < points.size(); ++p)
    for (std::size_t tap = 0; tap < winograd_taps * winograd_taps; ++tap)
      points[p] += transform[p / winograd_size][tap / winograd_taps] * transform[p % winograd_size][tap % winograd_taps] *
                   static_cast<double>(weight(m, c, static_cast<std::int64_t>(tap)));
  return points;
}

void pack_winograd(const TensorView& view, std::byte* destination, ThreadPool& pool) {
  const Weight weight(view);
  const std::int64_t matrix = weight.inputs() * panel_columns;
  pool.parallel_for(panel_count(weight.outputs()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * matrix; i < end * matrix; ++i) {
      const std::int64_t panel = i / matrix, c = i % matrix / panel_columns, m = panel * panel_columns + i % panel_columns;
      float* const to = reinterpret_cast<float*>(destination) + panel * winograd_points * matrix + i % matrix;
      const std::array<double, winograd_points> points = m < weight.outputs() ? transform_kernel(weight, m, c) : std::array<double, winograd_points>{};
      for (std::size_t p = 0; p < points.size(); ++p) to[static_cast<std::int64_t>(p) * matrix] = static_cast<float>(points[p]);
    }
  });
}

}  // namespace

constexpr WeightLayout conv_panels{"conv.panels", panels_size<0>, pack_panels<false>};
constexpr WeightLayout conv_channels{"conv.channels", panels_size<0>, pack_channels};
constexpr WeightLayout winograd_panels{"conv.winograd", winograd_size_of, pack_winograd};
constexpr WeightLayout transposed_panels{"conv.transposed_panels", panels_size<1>, pack_panels<true>};

}  // namespace cermet::cpu
