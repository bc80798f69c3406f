#include "kernel/cpu/conv/windows.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.hpp"

namespace cermet::cpu {
namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
/// What of x a thread works on at a time: stays in the second-level cache beside a part of the weights.
constexpr std::int64_t region_floats = (448 << 10) / float_bytes;
/// Addresses that are so far apart share a set of the first-level cache.
constexpr std::int64_t way_bytes = 4096;

/// Channels of a pixel in a copy: windows next to each other must not meet in few sets of the cache.
std::int64_t pixel_floats(const ConvGeometry& g, std::int64_t channels) {
  const std::int64_t stride = g.kernel[2] == 1 ? 1 : g.stride[2];
  return channels > 0 && channels * stride * float_bytes % (way_bytes / 2) == 0 ? channels + 16 : channels;
}

bool is_one(const ConvGeometry::Axes& axes) { return axes == ConvGeometry::Axes{1, 1, 1}; }
bool is_zero(const ConvGeometry::Axes& axes) { return axes == ConvGeometry::Axes{0, 0, 0}; }

}  // namespace

std::int64_t Windows::copy_floats(const ConvGeometry& g, std::int64_t channels, int block_columns) {
  const std::int64_t columns = (block_columns - 1) * (g.kernel[2] == 1 ? 1 : g.stride[2]) + g.extent(2);
  return std::max(region_floats, g.kernel[0] * g.extent(1) * columns * pixel_floats(g, channels));
}

std::int64_t Windows::most_runs(const ConvGeometry& g, std::int64_t group_channels) {
  return g.taps() * div_up(group_channels, run_limit);
}

Windows::Windows(const ConvGeometry& geometry, const TensorView& x, const TensorView& y, int block_columns, int threads,
                 std::int64_t panels, const ConvPrologueRun* prologue)
    : g_(geometry),
      x_(x),
      in_(conv_tensor(x, true)),
      convert_(real_converter(x.dtype, DType::f32)),
      prologue_(prologue) {
  const ConvTensor out = conv_tensor(y, true);
  samples_ = out.dims[0], depths_ = out.dims[2], rows_ = out.dims[3], columns_ = out.dims[4];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool one = g_.kernel[axis] == 1;
    copy_stride_[axis] = one ? 1 : g_.stride[axis];
    source_step_[axis] = one ? g_.stride[axis] : 1;
  }
  merge_axes();
  plan_reads();
  cut(block_columns, threads, panels);
  if (!copies_) return;
  line_ = copied(2, part_columns_) * pixel_;
  plane_ = copied(1, part_rows_) * line_;
  tap_ = {plane_, g_.dilation[1] * line_, g_.dilation[2] * pixel_};
}

/// Pixels that are multiplied one by one need no more than one axis. Samples stay apart where a prologue has operands
/// of each.
void Windows::merge_axes() {
  if (prologue_ && !prologue_->merges()) return;
  if (g_.taps() != 1 || in_.strides[1] != 1 || !is_one(g_.stride) || !is_zero(g_.before) || !is_zero(g_.after)) return;
  const std::int64_t pixel = in_.strides[4];
  std::int64_t step = pixel * in_.dims[4];
  for (const std::size_t axis : {std::size_t{3}, std::size_t{2}, std::size_t{0}}) {
    if (prologue_ && axis == 0) continue;
    if (in_.dims[axis] != 1 && in_.strides[axis] != step) return;
    step *= in_.dims[axis];
  }
  columns_ *= depths_ * rows_;
  if (!prologue_) columns_ *= std::exchange(samples_, 1);
  depths_ = rows_ = 1;
  in_.strides = {samples_ == 1 ? 0 : in_.strides[0], 1, 0, 0, pixel};
  in_.dims = {samples_, in_.dims[1], 1, 1, columns_};
  merged_ = true;
}

void Windows::plan_reads() {
  const std::int64_t step = g_.stride[2] * in_.strides[4] * float_bytes;
  copies_ = prologue_ || in_.strides[1] != 1 || x_.dtype != DType::f32 || !is_zero(g_.before) || !is_zero(g_.after) ||
            step % way_bytes == 0;
  pixel_ = copies_ ? pixel_floats(g_, in_.channels()) : in_.channels();
  if (!copies_)
    tap_ = {g_.dilation[0] * in_.strides[2], g_.dilation[1] * in_.strides[3], g_.dilation[2] * in_.strides[4]};
}

void Windows::cut(int block_columns, int threads, std::int64_t panels) {
  part_rows_ = rows_, part_columns_ = columns_;
  if (samples_ * depths_ * rows_ * columns_ == 0) return;
  const std::int64_t most = copy_floats(g_, in_.channels(), block_columns);
  while (part_rows_ > 1 && copied_floats(part_rows_, part_columns_) > most) part_rows_ = div_up(part_rows_, 2);
  while (part_columns_ > block_columns && copied_floats(part_rows_, part_columns_) > most)
    part_columns_ = round_up(div_up(part_columns_, 2), block_columns);
  const std::int64_t wanted = threads == 1 ? 1 : 8 * threads;
  const auto count = [&] {
    row_parts_ = div_up(rows_, part_rows_), column_parts_ = div_up(columns_, part_columns_);
    return region_count();
  };
  while (count() * panels < wanted && (part_rows_ > 1 || part_columns_ > block_columns)) {
    if (part_rows_ > 1) part_rows_ = div_up(part_rows_, 2);
    else part_columns_ = round_up(div_up(part_columns_, 2), block_columns);
  }
  part_rows_ = div_up(rows_, row_parts_);
  if (column_parts_ > 1) part_columns_ = round_up(div_up(columns_, column_parts_), block_columns);
  count();
}

WindowRegion Windows::region(std::int64_t index) const {
  WindowRegion r{};
  r.column = index % column_parts_ * part_columns_, index /= column_parts_;
  r.row = index % row_parts_ * part_rows_, index /= row_parts_;
  r.depth = index % depths_, r.sample = index / depths_;
  r.rows = std::min(part_rows_, rows_ - r.row), r.columns = std::min(part_columns_, columns_ - r.column);
  return r;
}

WindowSource Windows::source(const WindowRegion& r, float* memory) const {
  if (copies_) return {memory, copy_stride_[1] * line_, copy_stride_[2] * pixel_};
  const std::int64_t offset = r.sample * in_.strides[0] + r.depth * g_.stride[0] * in_.strides[2] +
                              r.row * g_.stride[1] * in_.strides[3] + r.column * g_.stride[2] * in_.strides[4];
  return {x_.as<const float>() + offset, g_.stride[1] * in_.strides[3], g_.stride[2] * in_.strides[4]};
}

void Windows::copy(const WindowRegion& r, float* memory) const {
  if (!copies_) return;
  for (std::int64_t t = 0; t < g_.kernel[0]; ++t)
    for (std::int64_t i = 0; i < copied(1, r.rows); ++i)
      copy_row(r, r.depth * g_.stride[0] - g_.before[0] + t * g_.dilation[0],
               r.row * g_.stride[1] - g_.before[1] + i * source_step_[1], memory + t * plane_ + i * line_);
}

/// One line of a copy, from x at depth d and row h, which may lie in the padding.
void Windows::copy_row(const WindowRegion& r, std::int64_t d, std::int64_t h, float* to) const {
  const std::int64_t channels = in_.channels(), count = copied(2, r.columns), step = source_step_[2];
  if (d < 0 || d >= in_.dims[2] || h < 0 || h >= in_.dims[3]) return void(std::fill_n(to, count * pixel_, 0.0f));
  const std::int64_t first = r.column * g_.stride[2] - g_.before[2];
  const std::int64_t begin = std::clamp<std::int64_t>(div_up(std::max<std::int64_t>(-first, 0), step), 0, count);
  const std::int64_t end =
      std::clamp<std::int64_t>(div_up(std::max<std::int64_t>(in_.dims[4] - first, 0), step), begin, count);
  std::fill_n(to, begin * pixel_, 0.0f);
  std::fill_n(to + end * pixel_, (count - end) * pixel_, 0.0f);
  if (prologue_)
    return (*prologue_)({r.sample, d, h, first + begin * step, step, end - begin}, merged_, to + begin * pixel_,
                        pixel_);
  const auto bytes = byte_size(x_.dtype);
  const std::byte* const line =
      x_.as<const std::byte>() + (r.sample * in_.strides[0] + d * in_.strides[2] + h * in_.strides[3]) * bytes;
  const auto read = [&](std::int64_t from, std::int64_t at, std::int64_t elements) {
    convert_(line + (first + from * step) * in_.strides[4] * bytes, reinterpret_cast<std::byte*>(to + at * pixel_),
             elements);
  };
  if (begin == end) return;
  if (in_.strides[1] != 1)
    return gather(reinterpret_cast<const float*>(line) + (first + begin * step) * in_.strides[4], end - begin,
                  to + begin * pixel_);
  if (step == 1 && pixel_ == channels && in_.strides[4] == channels)
    return read(begin, begin, (end - begin) * channels);
  for (std::int64_t i = begin; i < end; ++i) read(i, i, channels);
}

/// Pixels whose channels are apart in x.
void Windows::gather(const float* from, std::int64_t count, float* to) const {
  const std::int64_t step = source_step_[2] * in_.strides[4];
  if (in_.channels() == 3) {  // images: pixels are written one after the other
    const float *const second = from + in_.strides[1], *const third = second + in_.strides[1];
    for (std::int64_t i = 0; i < count; ++i, to += pixel_)
      to[0] = from[i * step], to[1] = second[i * step], to[2] = third[i * step];
    return;
  }
  for (std::int64_t c = 0; c < in_.channels(); ++c)
    for (std::int64_t i = 0; i < count; ++i) to[i * pixel_ + c] = from[c * in_.strides[1] + i * step];
}

std::int64_t Windows::list_runs(TapRun* runs) const {
  const std::int64_t channels = in_.channels() / g_.group;
  const bool merged = g_.group == 1 && tap_[2] == channels;  // a row of taps is one run
  const std::int64_t steps = merged ? 1 : g_.kernel[2], length = merged ? g_.kernel[2] * channels : channels;
  std::int64_t count = 0;
  for (std::int64_t d = 0; d < g_.kernel[0]; ++d)
    for (std::int64_t h = 0; h < g_.kernel[1]; ++h)
      for (std::int64_t w = 0; w < steps; ++w)
        for (std::int64_t c = 0; c < length; c += run_limit)
          runs[count++] = {d * tap_[0] + h * tap_[1] + w * tap_[2] + c, std::min(run_limit, length - c)};
  return count;
}

}  // namespace cermet::cpu
