// Where roi_align reads along one axis: one text for the reference and the kernels of every backend, in float64, so
// that numbers of samples round alike. Readable by host and device compilers.
#pragma once

#include "format/half.hpp"

namespace cermet::roi {

struct Rule {
  double scale;
  int half_pixel, sampling_ratio, maximum;
};

// A compiler may fuse a * b + c on its own: the project's build forbids it on the host, intrinsics do on a device.
#if defined(__CUDA_ARCH__)
__device__ inline double rounded_mul(double a, double b) { return __dmul_rn(a, b); }
#else
inline double rounded_mul(double a, double b) { return a * b; }
#endif

/// The bins of a region along one axis: `samples` in each.
struct Bins {
  double start, size;
  int samples;
};

CERMET_HOST_DEVICE inline Bins bins_of(const Rule& rule, double first, double last, int count) {
  const double offset = rule.half_pixel ? 0.5 : 0.0, start = rounded_mul(first, rule.scale) - offset,
               end = rounded_mul(last, rule.scale) - offset;
  double length = end - start;
  if (!rule.half_pixel && !(length >= 1)) length = 1;  // malformed regions have one pixel
  const double size = length / count;
  if (rule.sampling_ratio > 0) return {start, size, rule.sampling_ratio};
  if (!(size > 0)) return {start, size, 0};
  const double least = size < 1e6 ? size : 1e6;
  const int whole = static_cast<int>(least);
  return {start, size, static_cast<double>(whole) < least ? whole + 1 : whole};
}

/// Two neighbouring elements of an axis of `size` and their weights; `inside` is false for a sample that counts as
/// zero.
struct Tap {
  int low, high;
  double low_weight, high_weight;
  bool inside;
};

CERMET_HOST_DEVICE inline Tap tap_of(const Bins& bins, int bin, int sample, int size) {
  double x = bins.start + rounded_mul(bin, bins.size) + rounded_mul(sample + 0.5, bins.size) / bins.samples;
  if (!(x >= -1.0 && x <= size)) return {0, 0, 0, 0, false};
  if (x < 0) x = 0;
  const int low = static_cast<int>(x);
  if (low >= size - 1) return {size - 1, size - 1, 1, 0, true};
  return {low, low + 1, 1 - (x - low), x - low, true};
}

}  // namespace cermet::roi
