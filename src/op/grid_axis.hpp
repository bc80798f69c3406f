// Where grid_sample reads along one axis, and with which weights: one text for the reference and the kernels of every
// backend, in float64, so that coordinates near a tie round alike. Readable by host and device compilers.
#pragma once

#include "format/half.hpp"

namespace cermet::grid {

enum class Mode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

struct Rule {
  Mode mode;
  Padding padding;
  int align_corners;
};

/// Most taps of an axis.
inline constexpr int most_taps = 4;

struct Taps {
  int count;
  int place[most_taps];  ///< -1: a zero
  double weight[most_taps];
};

CERMET_HOST_DEVICE inline double floor_of(double x) {
  const double whole = static_cast<double>(static_cast<long long>(x));
  return whole > x ? whole - 1 : whole;
}

CERMET_HOST_DEVICE inline double reflected(double x, double low, double high) {
  if (x >= low && x <= high) return x;
  const double range = high - low;
  if (range <= 0) return low;
  const double distance = x < low ? low - x : x - high;
  const long long turns = static_cast<long long>(distance / range);
  const double remainder = distance - static_cast<double>(turns) * range;
  return (turns % 2 == 0) == (x < low) ? low + remainder : high - remainder;
}

/// Half to even.
CERMET_HOST_DEVICE inline double nearest_of(double x) {
  const double low = floor_of(x), remainder = x - low;
  if (remainder != 0.5) return remainder < 0.5 ? low : low + 1;
  return static_cast<long long>(low) % 2 == 0 ? low : low + 1;
}

/// Keys' cubic with a = -0.75 at distances 1 + x, x, 1 - x and 2 - x.
CERMET_HOST_DEVICE inline double cubic_weight(int tap, double x) {
  constexpr double a = -0.75;
  const double distance = tap == 0 ? x + 1 : tap == 1 ? x : tap == 2 ? 1 - x : 2 - x;
  if (tap == 1 || tap == 2) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

/// Taps of an axis of `size` elements for a coordinate in [-1, 1] over it.
CERMET_HOST_DEVICE inline Taps taps_at(const Rule& rule, double normalized, int size) {
  const double low = rule.align_corners ? 0 : -0.5, high = rule.align_corners ? size - 1.0 : size - 0.5;
  double x = rule.align_corners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
  if (!(x >= -1e9)) x = -1e9;
  if (x > 1e9) x = 1e9;
  if (rule.mode == Mode::nearest) x = nearest_of(x);
  if (x < low || x > high) {
    if (rule.padding == Padding::border) x = x < 0 ? 0 : size - 1;
    if (rule.padding == Padding::reflection) x = reflected(x, low, high);
  }
  Taps taps{rule.mode == Mode::nearest ? 1 : rule.mode == Mode::linear ? 2 : 4, {}, {}};
  const double whole = floor_of(x), ratio = x - whole;
  for (int k = 0; k < taps.count; ++k) {
    double at = rule.mode == Mode::cubic ? whole + k - 1 : whole + k;
    if (rule.padding == Padding::reflection) at = reflected(at, low, high);
    int place = static_cast<int>(at);
    if (rule.padding == Padding::border || rule.padding == Padding::reflection)
      place = place < 0 ? 0 : place >= size ? size - 1 : place;
    taps.place[k] = place >= 0 && place < size ? place : -1;
    const double weight = rule.mode == Mode::nearest ? 1
                          : rule.mode == Mode::cubic ? cubic_weight(k, ratio)
                          : k == 0                   ? 1 - ratio
                                                     : ratio;
    taps.weight[k] = weight;
  }
  return taps;
}

}  // namespace cermet::grid
