#include "kernel/cpu/conv/depthwise_rows.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"
#include "kernel/cpu/gemm/panels.hpp"

namespace cermet::cpu {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Taps [first, last) of `count`, `dilation` apart, whose element from `begin` on is one of [0, size).
void taps_inside(std::int64_t begin, std::int64_t dilation, std::int64_t count, std::int64_t size, std::int64_t& first,
                 std::int64_t& last) {
  first = std::min(count, div_up(std::max<std::int64_t>(-begin, 0), dilation));
  last = std::clamp<std::int64_t>(div_up(std::max<std::int64_t>(size - begin, 0), dilation), first, count);
}

std::int64_t least(std::int64_t channels) { return std::min(channels, panel_columns); }

}  // namespace

Decline declines_depthwise(const Problem& p) {
  const ConvGeometry g = conv_geometry(p);
  if (!g.channels_last) return "the layout is nchw";
  if (p.input(0).dtype != DType::f32) return fmt::format("x is {}, not f32", name_of(p.input(0).dtype));
  if (p.size(1, 1) != 1 || p.size(1, 0) != g.group) return "channels are not convolved one by one";
  if (g.group < least_depthwise_channels) return fmt::format("less than {} channels", least_depthwise_channels);
  return std::nullopt;
}

void DepthwiseRows::run(std::int64_t row, std::int64_t end, std::int64_t first, std::int64_t last) const {
  while (row < end) {
    const std::int64_t count = std::min({std::int64_t{depthwise_rows}, end - row, out.dims[3] - row % out.dims[3]});
    run_rows(row, count, first, last);
    row += count;
  }
}

/// Rows of one plane.
void DepthwiseRows::run_rows(std::int64_t row, std::int64_t count, std::int64_t first, std::int64_t last) const {
  const std::int64_t h = row % out.dims[3], d = row / out.dims[3] % out.dims[2], n = row / out.dims[3] / out.dims[2];
  const std::int64_t from_d = d * g.stride[0] - g.before[0], from_h = h * g.stride[1] - g.before[1];
  DepthwiseBlock b{};
  b.plane_step = g.dilation[0] * in.strides[2], b.row_step = g.dilation[1] * in.strides[3], b.pixel = in.strides[4];
  taps_inside(from_d, g.dilation[0], g.kernel[0], in.dims[2], b.first_plane, b.last_plane);
  for (std::int64_t r = 0; r < count; ++r)
    taps_inside(from_h + r * g.stride[1], g.dilation[1], g.kernel[1], in.dims[3], b.first_row[r], b.last_row[r]);
  b.rows = g.kernel[1], b.taps = g.kernel[2], b.stride = g.stride[2], b.dilation = g.dilation[2], b.tap_step = width;
  b.place_rows = count, b.row_places = out.dims[4], b.place_row_step = g.stride[1] * in.strides[3];
  const std::int64_t line = n * in.strides[0] + from_d * in.strides[2] + from_h * in.strides[3];
  const std::int64_t place = row * out.dims[4], whole = out.dims[4];
  const float* const from = x + line - g.before[2] * b.pixel;
  const std::int64_t at_once = store.takes_sums() ? places_at_once(whole, last - first) : depthwise_places;
  for (std::int64_t column = 0; column < whole; column += at_once) {
    const std::int64_t step = column * g.stride[2];
    b.low = g.before[2] - step, b.high = in.dims[4] + g.before[2] - step, b.count = std::min(at_once, whole - column);
    if (store.takes_sums()) run_sums(b, from + step * b.pixel, place + column, first, last);
    else
      for (std::int64_t c = first; c < last; c += panel_columns)
        run_tile(b, from + step * b.pixel, place + column, std::min(c, last - least(last - first)), last);
  }
}

/// Places of rows of `whole` whose results are stored before a function of them runs: those that stay in the
/// first-level cache.
std::int64_t DepthwiseRows::places_at_once(std::int64_t whole, std::int64_t channels) const {
  constexpr std::int64_t most_results = 4096 / depthwise_rows;
  return store.has_function() ? round_up(std::max<std::int64_t>(1, most_results / channels), depthwise_places) : whole;
}

/// Channels [first, last), stored from registers.
void DepthwiseRows::run_sums(DepthwiseBlock b, const float* from, std::int64_t place, std::int64_t first,
                             std::int64_t last) const {
  const TapStore at = store.store_at(place, first);
  b.x = from + first, b.weight = weight + first, b.columns = last - first;
  multiply(b, at);
  for (std::int64_t r = 0; r < b.place_rows; ++r)
    store.finish(store.store_at(place + r * b.row_places, first), b.count, b.columns);
}

/// Channels from c on, by way of a tile.
void DepthwiseRows::run_tile(DepthwiseBlock b, const float* from, std::int64_t place, std::int64_t c,
                             std::int64_t last) const {
  alignas(64) float tile[depthwise_rows * depthwise_places * panel_columns];
  b.row_places = depthwise_places;
  b.x = from + c, b.weight = weight + c, b.columns = std::min(panel_columns, last - c);
  multiply(b, {.y = tile,
               .y_step = panel_columns,
               .bias = nullptr,
               .residual = nullptr,
               .residual_step = 0,
               .low = -infinity,
               .high = infinity});
  for (std::int64_t r = 0; r < b.place_rows; ++r)
    store(tile + r * depthwise_places * panel_columns, c, {place + r * out.dims[4], b.count, c, b.columns});
}

}  // namespace cermet::cpu
