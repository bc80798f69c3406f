#include "kernel/cpu/conv/weights.hpp"

#include <algorithm>
#include <vector>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cpu/conv/winograd.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/parts.hpp"
#include "op/conv.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

/// A weight by output channel, input channel and tap.
class Weight {
 public:
  /// `swapped`: stored by input channel, then output channel.
  explicit Weight(const TensorView& view, bool swapped = false) : view_(view), at_(conv_tensor(view, false)) {
    for (std::int64_t d = 0; d < at_.dims[2]; ++d)
      for (std::int64_t h = 0; h < at_.dims[3]; ++h)
        for (std::int64_t w = 0; w < at_.dims[4]; ++w)
          taps_.push_back(d * at_.strides[2] + h * at_.strides[3] + w * at_.strides[4]);
    if (!swapped) return;
    std::swap(at_.dims[0], at_.dims[1]);
    std::swap(at_.strides[0], at_.strides[1]);
  }
  std::int64_t outputs() const { return at_.dims[0]; }
  std::int64_t inputs() const { return at_.dims[1]; }
  std::int64_t taps() const { return at_.positions(); }
  /// All taps of a pair of channels, `step` apart.
  void load(std::int64_t m, std::int64_t c, float* to, std::int64_t step) const {
    const std::int64_t first = m * at_.strides[0] + c * at_.strides[1];
    for (const std::int64_t offset : taps_) {
      *to = view_.dtype == DType::f32
                ? view_.as<const float>()[first + offset]
                : static_cast<float>(format::load_element(view_.data, view_.dtype, first + offset));
      to += step;
    }
  }

 private:
  const TensorView& view_;
  ConvTensor at_;
  std::vector<std::int64_t> taps_;  ///< elements from the first
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
  const std::int64_t matrix = weight.inputs() * panel_columns, panel_floats = weight.taps() * matrix;
  pool.parallel_for(panel_count(weight.outputs()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      float* const to = reinterpret_cast<float*>(destination) + panel * panel_floats;
      const std::int64_t first = panel * panel_columns, width = std::min(panel_columns, weight.outputs() - first);
      if (width < panel_columns) std::fill_n(to, panel_floats, 0.0f);
      for (std::int64_t c = 0; c < weight.inputs(); ++c)
        for (std::int64_t column = 0; column < width; ++column)
          weight.load(first + column, c, to + c * panel_columns + column, matrix);
    }
  });
}

std::int64_t parts_size(const TensorType& weight) {
  return panel_count(weight.dims[0].constant()) * div_up(weight.dims[1].constant(), parts_steps) * parts_panel_bytes;
}

void pack_parts_panels(const TensorView& view, std::byte* destination, ThreadPool& pool) {
  const std::int64_t panels = panel_count(view.shape[0]), length = view.shape[1],
                     step = div_up(length, parts_steps) * parts_panel_bytes;
  std::vector<float> whole(static_cast<std::size_t>(panels * panel_columns * length));
  pack_panels<false>(view, reinterpret_cast<std::byte*>(whole.data()), pool);
  pool.parallel_for(panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      PanelParts parts(whole.data() + panel * panel_columns * length, length, destination + panel * step);
      split_remaining(parts);
    }
  });
}

void pack_channels(const TensorView& view, std::byte* destination, ThreadPool&) {
  const Weight weight(view);
  const std::int64_t width = round_up(weight.outputs(), panel_columns);
  auto* const to = reinterpret_cast<float*>(destination);
  std::fill_n(to, weight.taps() * width, 0.0f);
  for (std::int64_t m = 0; m < weight.outputs(); ++m) weight.load(m, 0, to + m, width);
}

std::int64_t winograd_size_of(const TensorType& weight) {
  return panel_count(weight.dims[0].constant()) * panel_columns * weight.dims[1].constant() * winograd_points *
         float_bytes;
}

/// Taps of 3 x 3 windows, [3][3][32], to points, [6][6]: transform * taps * transposed transform, for the points 0, 1,
/// -1, 2, -2 and infinity.
void transform_kernels(const float* taps, float* to, std::int64_t point_step) {
  constexpr double transform[winograd_size][winograd_taps] = {{1.0 / 4, 0, 0},
                                                              {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                                              {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                                              {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                                              {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                                              {0, 0, 1}};
  double half[winograd_taps][panel_columns];
  for (const double(&row)[winograd_taps] : transform) {
    for (int tap = 0; tap < winograd_taps; ++tap)
      for (std::int64_t i = 0; i < panel_columns; ++i) {
        const auto at = [&](int line) {
          return static_cast<double>(taps[(line * winograd_taps + tap) * panel_columns + i]);
        };
        half[tap][i] = row[0] * at(0) + row[1] * at(1) + row[2] * at(2);
      }
    for (const double(&column)[winograd_taps] : transform) {
      for (std::int64_t i = 0; i < panel_columns; ++i)
        to[i] = static_cast<float>(column[0] * half[0][i] + column[1] * half[1][i] + column[2] * half[2][i]);
      to += point_step;
    }
  }
}

void pack_winograd(const TensorView& view, std::byte* destination, ThreadPool& pool) {
  const Weight weight(view);
  const std::int64_t matrix = weight.inputs() * panel_columns;
  pool.parallel_for(panel_count(weight.outputs()), 1, [&](std::int64_t begin, std::int64_t end) {
    float taps[winograd_taps * winograd_taps * panel_columns];
    for (std::int64_t panel = begin; panel < end; ++panel) {
      float* const to = reinterpret_cast<float*>(destination) + panel * winograd_points * matrix;
      const std::int64_t first = panel * panel_columns, width = std::min(panel_columns, weight.outputs() - first);
      std::ranges::fill(taps, 0.0f);
      for (std::int64_t c = 0; c < weight.inputs(); ++c) {
        for (std::int64_t column = 0; column < width; ++column)
          weight.load(first + column, c, taps + column, panel_columns);
        transform_kernels(taps, to + c * panel_columns, matrix);
      }
    }
  });
}

}  // namespace

constexpr WeightLayout conv_panels{"conv.panels", panels_size<0>, pack_panels<false>};
constexpr WeightLayout conv_parts_panels{"conv.parts", parts_size, pack_parts_panels};
constexpr WeightLayout conv_channels{"conv.channels", panels_size<0>, pack_channels};
constexpr WeightLayout winograd_panels{"conv.winograd", winograd_size_of, pack_winograd};
constexpr WeightLayout transposed_panels{"conv.transposed_panels", panels_size<1>, pack_panels<true>};

}  // namespace cermet::cpu
