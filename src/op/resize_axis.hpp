// Where resize reads along one axis, and with which weights: one text for the reference and the kernels of every
// backend, so that coordinates near a tie round alike. Readable by host and device compilers.
#pragma once

#include "format/half.hpp"

namespace cermet::resize {

using Index = long long;

enum class Mode { nearest, linear, cubic };
enum class Coordinates {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  tf_half_pixel_for_nn,
  align_corners,
  asymmetric,
  tf_crop_and_resize
};
enum class Nearest { round_prefer_floor, round_prefer_ceil, floor, ceil };

struct Rule {
  Mode mode;
  Coordinates coordinates;
  Nearest nearest;
  int exclude_outside, antialias;
  double cubic;  ///< coefficient a of the cubic
};

/// An axis of `in` elements that becomes one of `out`; `begin` and `end` of the crop are fractions of it.
struct Axis {
  Index in, out;
  double scale, begin, end;
  int taps;  ///< elements of x behind one of y
};

CERMET_HOST_DEVICE inline Index floor_of(double x) {
  const Index i = static_cast<Index>(x);
  return static_cast<double>(i) > x ? i - 1 : i;
}
CERMET_HOST_DEVICE inline double magnitude(double x) { return x < 0 ? -x : x; }

/// Elements of x behind one of y.
CERMET_HOST_DEVICE inline int count_taps(const Rule& rule, double scale) {
  if (rule.mode == Mode::nearest) return 1;
  const int radius = rule.mode == Mode::cubic ? 2 : 1;
  if (!rule.antialias || scale >= 1) return 2 * radius;
  return static_cast<int>(-2 * floor_of(-radius / scale));
}

/// Coordinate in x of element i of y.
CERMET_HOST_DEVICE inline double coordinate(const Rule& rule, const Axis& axis, Index i) {
  const double last = static_cast<double>(axis.in - 1), width = axis.scale * static_cast<double>(axis.in),
               at = static_cast<double>(i);
  switch (rule.coordinates) {
    case Coordinates::align_corners: return width == 1 ? 0 : at * last / (width - 1);
    case Coordinates::asymmetric: return at / axis.scale;
    case Coordinates::tf_crop_and_resize: {
      const double inside = width == 1 ? (axis.end - axis.begin) * last / 2
                                       : at * (axis.end - axis.begin) * last / (width - 1),
                   start = axis.begin * last;
      return inside + start;
    }
    case Coordinates::pytorch_half_pixel: return width == 1 ? -0.5 : (at + 0.5) / axis.scale - 0.5;
    case Coordinates::tf_half_pixel_for_nn: return (at + 0.5) / axis.scale;
    case Coordinates::half_pixel: return (at + 0.5) / axis.scale - 0.5;
    case Coordinates::half_pixel_symmetric: {
      const double offset = static_cast<double>(axis.in) / 2 * (1 - static_cast<double>(axis.out) / width);
      return offset + (at + 0.5) / axis.scale - 0.5;
    }
  }
  return 0;
}

/// Weight of an element at this distance, in units of the filter.
CERMET_HOST_DEVICE inline double weight_at(const Rule& rule, double distance) {
  const double x = magnitude(distance), a = rule.cubic;
  if (rule.mode == Mode::linear) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

CERMET_HOST_DEVICE inline Index nearest_of(Nearest rule, double x) {
  const Index low = floor_of(x);
  const double ratio = x - static_cast<double>(low);
  if (ratio == 0) return low;
  switch (rule) {
    case Nearest::round_prefer_floor: return ratio <= 0.5 ? low : low + 1;
    case Nearest::round_prefer_ceil: return ratio < 0.5 ? low : low + 1;
    case Nearest::floor: return low;
    case Nearest::ceil: return low + 1;
  }
  return low;
}

/// Writes index and weight of the taps of element i of y to [k * step]. Returns whether the element is outside a crop
/// instead, and is extrapolated.
template <class Position, class Weight>
CERMET_HOST_DEVICE inline bool sample(const Rule& rule, const Axis& axis, Index i, Position* places, Weight* weights,
                                      Index step) {
  const double x = coordinate(rule, axis, i);
  const bool outside =
      rule.coordinates == Coordinates::tf_crop_and_resize && (x < 0 || x > static_cast<double>(axis.in - 1));
  const auto clamped = [&](Index at) { return static_cast<Position>(at < 0 ? 0 : at >= axis.in ? axis.in - 1 : at); };
  if (rule.mode == Mode::nearest) {
    places[0] = clamped(nearest_of(rule.nearest, x));
    weights[0] = 1;
    return outside;
  }
  // The tap before x or at it: an integer coordinate has ratio 1, as ONNX's reference has it.
  const Index low = floor_of(x), base = static_cast<double>(low) == x ? low - 1 : low, first = base + 1 - axis.taps / 2;
  const double ratio = x - static_cast<double>(base), filter = rule.antialias && axis.scale < 1 ? axis.scale : 1;
  const bool normalized = rule.antialias || rule.exclude_outside;
  const auto weight = [&](int k) {
    if (rule.exclude_outside && (first + k < 0 || first + k >= axis.in)) return 0.0;
    return weight_at(rule, (static_cast<double>(first + k - base) - ratio) * filter);
  };
  double sum = 0;
  for (int k = 0; normalized && k < axis.taps; ++k) sum += weight(k);
  if (sum == 0) sum = 1;
  for (int k = 0; k < axis.taps; ++k) {
    places[k * step] = clamped(first + k);
    weights[k * step] = static_cast<Weight>(weight(k) / sum);
  }
  return outside;
}

}  // namespace cermet::resize
