// Windows that slide over the spatial axes of samples with channels: what the pooling operators share.
#pragma once

#include "op/schema/operator.hpp"
#include "op/spatial_view.hpp"

namespace cermet {

/// The attributes of a window.
struct PoolWindow {
  bool channels_last = false, whole = false;  ///< whole: the window is all of the input
  Spatial kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, before{0, 0, 0}, after{0, 0, 0};

  /// The same over an input of this size.
  PoolWindow over(const Spatial& input) const;
};

/// kernel, strides, pads, dilations, ceil_mode and layout, for schemas.
std::vector<AttributeSpec> pool_attributes();
/// What the attributes say of an operand of `rank` dimensions; they were checked before.
PoolWindow pool_window(const Attributes& attributes, int rank);
/// Checks operand 0 and the attributes of pool_attributes(); returns the dimensions of the result. Throws Error naming
/// the operand or attribute.
Dims pooled_dims(const Problem& problem);
/// Dimensions of a case: two samples of `channels` channels with these spatial axes, in a layout of the attribute.
Dims pool_case_dims(std::string_view layout, Dims spatial, std::int64_t channels = 6);
/// Elements in a window, at the symbols' maximum.
double window_elements(const Problem& problem);

/// Checks that an attribute of one entry for each of `axes`, or empty, holds numbers in [least, 2^31).
void expect_entries(const Problem& problem, std::string_view name, std::size_t entries, std::int64_t least);
/// Copies the entries of a list to the last axes; an empty list leaves them alone. `first` is where to begin in the
/// list.
void set_spatial(Spatial& to, const Ints& list, std::size_t axes, std::size_t first = 0);
/// The channel axis: 1, or the last where the layout attribute says so.
bool is_channels_last(const Attributes& attributes);

/// Taps of a window along one axis that lie inside [0, size): [first, last) of 0 .. kernel - 1.
struct TapRange {
  std::int64_t first, last, start;  ///< start: position of tap 0, which may be negative
};
inline TapRange taps_inside(const PoolWindow& window, int axis, std::int64_t at, std::int64_t size) {
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t start = at * window.stride[a] - window.before[a], step = window.dilation[a];
  const auto steps = [step](std::int64_t distance) {
    return step == 1 ? distance : (distance + step - 1) / step;
  };  // divisions are slow
  const std::int64_t first = start >= 0 ? 0 : steps(-start), last = start >= size ? 0 : steps(size - start);
  return {first, last < window.kernel[a] ? last : window.kernel[a], start};
}
/// Taps that an average counts along one axis: those inside, and with `padding` those on the pads too, but not those
/// beyond them.
inline std::int64_t counted_taps(const PoolWindow& window, int axis, std::int64_t at, std::int64_t size, bool padding) {
  const auto a = static_cast<std::size_t>(axis);
  PoolWindow shifted = window;
  if (padding) {
    shifted.before[a] = 0;
    size += window.before[a] + window.after[a];
  }
  const TapRange taps = taps_inside(shifted, axis, at, size);
  return taps.last > taps.first ? taps.last - taps.first : 0;
}

/// Calls body(position in x) for the taps of the window at `at` that are inside, in row-major order.
template <class Body>
void for_window(const PoolWindow& window, const Spatial& size, const Spatial& at, Body&& body) {
  TapRange taps[3];
  for (int a = 0; a < 3; ++a)
    taps[a] = taps_inside(window, a, at[static_cast<std::size_t>(a)], size[static_cast<std::size_t>(a)]);
  for (std::int64_t i = taps[0].first; i < taps[0].last; ++i)
    for (std::int64_t j = taps[1].first; j < taps[1].last; ++j)
      for (std::int64_t k = taps[2].first; k < taps[2].last; ++k)
        body(Spatial{taps[0].start + i * window.dilation[0], taps[1].start + j * window.dilation[1],
                     taps[2].start + k * window.dilation[2]});
}

/// What the windows of max_unpool cover: `least` elements of an axis for one of x, `step` more for each other.
struct Unpooling {
  Spatial least{1, 1, 1}, step{1, 1, 1};
  Spatial covered(const Spatial& size) const {
    return {least[0] + (size[0] - 1) * step[0], least[1] + (size[1] - 1) * step[1], least[2] + (size[2] - 1) * step[2]};
  }
};
Unpooling unpooling_of(const Attributes& attributes, int rank);

/// The attributes of col2im.
struct ImageBlocks {
  Spatial image{1, 1, 1}, count{1, 1, 1};  ///< pixels, and blocks, along each axis
  PoolWindow window;
};
ImageBlocks image_blocks(const Attributes& attributes);

}  // namespace cermet
